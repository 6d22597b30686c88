package dev.tallylock

import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import kotlin.time.Duration.Companion.minutes
import kotlin.time.toJavaDuration

/** Texts that have no UTF-8. */
class ArgumentsTest {
    @Test
    fun halfOfASurrogatePairIsRefused() {
        Tallylock.connectBlocking("memory://").use { client ->
            val value = client.value("v")
            val counter = client.counter("c", TTL)
            val calls =
                listOf<Pair<String, () -> Any>>(
                    "a?" to { client.counter(TEXT, TTL) },
                    "a?" to { client.lock(TEXT, TTL) },
                    "a?" to { client.value(TEXT) },
                    "c" to { counter.add(1, TEXT) },
                    "c" to { counter.entry(1, TEXT) },
                    "c" to { counter.claim(TEXT)!! },
                    "c" to { counter.commit(TEXT, 1) },
                    "c" to { counter.abort(TEXT) },
                    "a?" to { client.scan(TEXT) },
                    "a?" to { client.expiring(TEXT, TTL) },
                    "v" to { value.replaceIfPresent(TEXT, TTL) },
                    "v" to { value.compareAndSet("old", TEXT, TTL) },
                    "v" to { value.compareAndSet(TEXT, "new", TTL) },
                )
            for ((key, call) in calls) {
                val refused = assertThrows(InvalidArgumentException::class.java) { call() }
                assertEquals(key, refused.key)
                assertEquals(Applied.No, refused.applied)
                assertTrue("surrogate" in refused.message.orEmpty())
            }
        }
    }

    @Test
    fun soItIsWhereAClientIsMade() {
        val calls =
            listOf<suspend () -> Any>(
                { Tallylock.connect("redis://:sesame@$TEXT") },
                { Tallylock.connectBlocking("redis://:sesame@$TEXT") },
                { Tallylock.connect("memory://", owner = Owner.Label(TEXT)) },
                { Tallylock.connectBlocking("memory://", owner = Owner.Label(TEXT)) },
            )
        for (call in calls) {
            val refused = assertThrows(InvalidArgumentException::class.java) { runBlocking { call() } }
            assertTrue("surrogate" in refused.message.orEmpty())
            // It may hold a password.
            assertFalse("sesame" in refused.message.orEmpty())
        }
    }

    private companion object {
        const val TEXT = "a\ud800"
        val TTL = 15.minutes.toJavaDuration()
    }
}
