package dev.tallylock.cases

import dev.tallylock.testing.FaceMemory
import dev.tallylock.testing.Found
import dev.tallylock.testing.TestServer
import kotlinx.coroutines.delay
import redis.clients.jedis.params.SetParams
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds

/** What surrounds the client of a case: other programs, the passing of time, and what is there in the end. */
interface World {
    fun plant(plant: Plant)

    fun remove(key: String)

    suspend fun advance(duration: Duration)

    fun loseNextReply()

    /** Every key that is there. */
    fun keys(): List<Found>
}

/** `memory://`, steered by its test face. */
class MemoryWorld(private val memory: FaceMemory) : World {
    override fun plant(plant: Plant) {
        val key = plant.key.text.encodeToByteArray()
        val ttl = plant.ttlMs?.milliseconds
        if (plant.value == null) memory.putOtherType(key, ttl) else memory.put(key, plant.value.bytes, ttl)
    }

    override fun remove(key: String) = memory.remove(key)

    override suspend fun advance(duration: Duration) = memory.advance(duration)

    override fun loseNextReply() = memory.loseNextReply()

    override fun keys() = memory.keys()
}

/** A real server, and another program on it. */
class ServerWorld(server: TestServer) : World {
    private val bystander = server.bystander

    override fun plant(plant: Plant) {
        val key = plant.key.text.encodeToByteArray()
        if (plant.value == null) {
            bystander.del(key)
            bystander.rpush(key, "x".encodeToByteArray())
            plant.ttlMs?.let { bystander.pexpire(key, it) }
        } else {
            bystander.set(key, plant.value.bytes, SetParams().apply { plant.ttlMs?.let(::px) })
        }
    }

    override fun remove(key: String) {
        bystander.del(key)
    }

    override suspend fun advance(duration: Duration) = delay(duration)

    override fun loseNextReply() = error("a server loses no reply at command")

    override fun keys() =
        bystander.keys("*".encodeToByteArray()).map { key ->
            val value = if (bystander.type(key) == "string") bystander.get(key) else null
            Found(key, value, bystander.pttl(key).takeIf { it >= 0 }?.milliseconds)
        }
}
