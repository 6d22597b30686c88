package dev.tallylock

import dev.tallylock.testing.Face
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import kotlin.time.Duration
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.minutes
import java.time.Duration as JavaDuration

/** Batches as large as they may be, and what an entry's idempotency key may be. */
class BatchTest {
    @ParameterizedTest
    @EnumSource
    fun aBatchMayHaveTenThousandEntries(face: Face) =
        runBlocking {
            face.connect("memory://", timeout = 1.minutes).use { client ->
                val counters = List(COUNTERS) { client.counter("session:$it", 15.minutes) }
                val entries = List(MOST) { counters[it % COUNTERS].entry(1, if (it % 2 == 0) null else "evt-$it") }
                val expected = List(MOST) { Added(it / COUNTERS + 1L, applied = true) }
                assertEquals(expected, client.addMany(entries).map { it.getOrThrow() })
                // Those with a key count once.
                val again = client.addMany(entries).map { it.getOrThrow().applied }
                assertEquals(List(MOST) { it % 2 == 0 }, again)
            }
        }

    @ParameterizedTest
    @EnumSource
    fun oneMoreIsRefused(face: Face) =
        runBlocking {
            face.connect("memory://").use { client ->
                val entry = client.counter(KEY, 15.minutes).entry(1)
                assertRefused { client.addMany(List(MOST + 1) { entry }) }
                assertTrue(client.memory!!.keys().isEmpty())
            }
        }

    @ParameterizedTest
    @EnumSource
    fun anEntryThatFailedThrowsWhenItIsAskedFor(face: Face) =
        runBlocking {
            face.connect("memory://").use { client ->
                client.memory!!.put(KEY.encodeToByteArray(), "text".encodeToByteArray(), null)
                val result = client.addMany(listOf(client.counter(KEY, 15.minutes).entry(1))).single()
                val failure = assertThrows(NotAnIntegerException::class.java) { result.getOrThrow() }
                assertEquals(KEY, failure.key)
                assertEquals(Applied.No, failure.applied)
            }
        }

    @Test
    fun anEmptyIdempotencyKeyIsNotNone() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                val counter = client.counter(KEY, 15.minutes)
                val blocking = client.blocking.counter(KEY, JavaDuration.ofMinutes(15))
                assertRefused { client.addMany(listOf(counter.entry(1, ""))) }
                assertRefused { client.addMany(listOf(counter.entry(1, ByteArray(0)))) }
                assertRefused { client.addMany(listOf(blocking.entry(1, ""))) }
                assertRefused { client.addMany(listOf(blocking.entry(1, ByteArray(0)))) }
                assertRefused { counter.add(1, "") }
                assertRefused { blocking.add(1, "") }
                assertTrue(client.memory!!.keys().isEmpty())
            }
        }

    @Test
    fun noTimeIsNotTheDefaultTime() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                val counter = client.counter(KEY, 15.minutes)
                val blocking = client.blocking.counter(KEY, JavaDuration.ofMinutes(15))
                assertRefused { counter.add(1, "evt-1", remember = Duration.ZERO) }
                assertRefused { blocking.add(1, "evt-1", JavaDuration.ZERO) }
                assertRefused { client.addMany(listOf(counter.entry(1, "evt-1", remember = Duration.ZERO))) }
                assertRefused { client.addMany(listOf(blocking.entry(1, "evt-1", JavaDuration.ZERO))) }
                assertTrue(client.memory!!.keys().isEmpty())
            }
        }

    @Test
    fun anEntryKeepsItsKeyAndItsTime() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                val key = "evt-1".encodeToByteArray()
                val entry = client.counter("{$KEY}", 15.minutes, Expiry.Fixed).entry(5, key, remember = 1.hours)
                key.fill(0)
                assertEquals(AddResult.Success(Added(5, applied = true)), client.addMany(listOf(entry)).single())
                client.memory!!.advance(5.minutes)
                assertEquals(AddResult.Success(Added(5, applied = false)), client.addMany(listOf(entry)).single())
                val left = client.memory!!.keys().associate { it.key.decodeToString() to it.ttl }
                assertEquals(mapOf("{$KEY}" to 10.minutes, "{$KEY}:tl1:once:evt-1" to 55.minutes), left)
            }
        }

    private fun assertRefused(call: suspend () -> Any?) {
        val refused = assertThrows(InvalidArgumentException::class.java) { runBlocking { call() } }
        assertEquals("invalid_argument", refused.code)
        assertEquals(Applied.No, refused.applied)
    }

    private companion object {
        const val KEY = "session:42:billableSecondsPending"
        const val COUNTERS = 100
        const val MOST = 10_000
    }
}
