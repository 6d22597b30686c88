package bench

import dev.tallylock.Tallylock
import kotlinx.coroutines.runBlocking
import kotlin.time.Duration.Companion.minutes
import java.time.Duration as JavaDuration

internal fun tallylockBlocking(url: String, key: String) {
    Tallylock.connectBlocking(url).use { client ->
        val counter = client.counter(key, JavaDuration.ofMinutes(15))
        answerBlocks { counter.add(1) }
    }
}

internal fun tallylockSuspend(url: String, key: String) {
    runBlocking {
        Tallylock.connect(url).use { client ->
            val counter = client.counter(key, ttl = 15.minutes)
            answerBlocks { counter.add(1) }
        }
    }
}
