package bench

import io.lettuce.core.ExperimentalLettuceCoroutinesApi
import io.lettuce.core.RedisClient
import io.lettuce.core.ScriptOutputType
import io.lettuce.core.api.coroutines
import kotlinx.coroutines.runBlocking
import java.io.File

private val counterAdd = File("core/lua/counter_add.lua")

internal fun lettuceBlocking(url: String, key: String) {
    RedisClient.create(url).use { client ->
        val redis = client.connect().sync()
        val sha = redis.scriptLoad(counterAdd.readText())
        val keys = arrayOf(key)
        answerBlocks {
            redis.evalsha<String>(sha, ScriptOutputType.VALUE, keys, "1", "900000", "sliding").toLong()
        }
    }
}

@OptIn(ExperimentalLettuceCoroutinesApi::class)
internal fun lettuceSuspend(url: String, key: String) {
    RedisClient.create(url).use { client ->
        val redis = client.connect().coroutines()
        runBlocking {
            val sha = checkNotNull(redis.scriptLoad(counterAdd.readText()))
            val keys = arrayOf(key)
            answerBlocks {
                val total: String? = redis.evalsha(sha, ScriptOutputType.VALUE, keys, "1", "900000", "sliding")
                checkNotNull(total).toLong()
            }
        }
    }
}
