package dev.tallylock

import dev.tallylock.testing.Face
import dev.tallylock.testing.FaceClient
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.toJavaDuration

/** What a client counts: exactly in memory, whose time is virtual, and on a real server what needs a renewal. */
class MetricsTest {
    @ParameterizedTest
    @EnumSource
    fun eachNumberButThoseOfRenewalsComesAbout(face: Face) =
        runBlocking {
            face.connect("memory://").use { client ->
                val memory = checkNotNull(client.memory)
                val lock = client.lock("l", TTL)
                val other = client.lock("l", TTL)
                assertEquals(NOTHING, client.metrics())

                val lease = lock.acquire()
                memory.advance(2.seconds)
                refused<BusyException> { other.acquire(5.seconds) }
                val denied = client.metrics()
                assertTrue(denied.attempts > 2, "$denied")
                refused<AlreadyHeldException> { lock.acquire() }
                assertEquals(denied, client.metrics())
                memory.advance(3.seconds)
                lease.release()

                val given = lock.acquire()
                memory.advance(1.seconds)
                val adopted = other.adopt(given.transfer())
                memory.advance(TTL * 2)
                assertFalse(adopted.isValid)
                val taken = lock.acquire()
                memory.put("l".encodeToByteArray(), "another's".encodeToByteArray(), TTL)
                refused<LostException> { taken.extend(TTL) }
                memory.remove("l")
                val kept = lock.acquire()
                other.steal(checkNotNull(other.inspect()).token, "nobody has it")

                memory.putOtherType("list".encodeToByteArray(), null)
                refused<WrongTypeException> { client.lock("list", TTL).acquire(1.seconds) }
                memory.put("counter".encodeToByteArray(), "5".encodeToByteArray(), null)
                client.counter("counter", TTL).drain()

                val expected =
                    NOTHING.copy(
                        granted = 4,
                        busy = 1,
                        failed = 1,
                        attempts = denied.attempts + 4,
                        waited = 5.seconds,
                        longestWait = 5.seconds,
                        adopted = 1,
                        released = 1,
                        transferred = 1,
                        lost = Losses(expired = 1, takenOver = 1, unreachable = 0),
                        held = 11.seconds + VALID,
                        longestHold = VALID,
                        stolen = 1,
                        healed = 1,
                    )
                assertEquals(expected, client.metrics())
                assertEquals(2, expected.lost.total)
                assertTrue(kept.isValid, "as far as its holder knows")
            }
        }

    @ParameterizedTest
    @EnumSource
    fun renewalsAndALostServerAreCounted(face: Face) {
        val server = TestServer.empty(ServerKind.Valkey)
        runBlocking(Dispatchers.Default) {
            face.connect(server.url).use { client ->
                val lease = client.lock("l", 4.seconds, Renewal.Every(20.milliseconds)).acquire()
                val renewed = client.metricsOnce { it.renewals >= 3 }
                val margin = checkNotNull(renewed.smallestMargin)
                assertTrue(margin in 1.milliseconds..4.seconds, "$margin")
                val lost = server.whileStopped { client.metricsOnce { it.lost.total == 1L } }
                assertEquals(Losses(expired = 0, takenOver = 0, unreachable = 1), lost.lost)
                assertTrue(lost.failedRenewals > 0, "$lost")
                assertEquals(lost.held, lost.longestHold)
                assertTrue(lost.held > 3.seconds, "$lost")
                assertFalse(lease.isValid)
            }
        }
    }

    @Test
    fun aCancelledAcquireIsCountedAsSuch() {
        val server = TestServer.empty(ServerKind.Valkey)
        runBlocking(Dispatchers.Default) {
            Tallylock.connect(server.url).use { client ->
                val lease = client.lock("l", TTL).acquire()
                val acquiring = launch { client.lock("l", TTL).acquire(1.minutes) }
                withTimeout(1.minutes) { while (server.bystander.pubsubChannels().isEmpty()) delay(5.milliseconds) }
                acquiring.cancelAndJoin()
                val counted = withTimeout(1.minutes) { once({ client.metrics() }) { it.cancelled == 1L } }
                assertEquals(listOf(1L, 0L, 0L), counted.run { listOf(granted, busy, failed) })
                lease.release()
            }
        }
    }

    @Test
    fun bothFacesCountTogetherAndLeasesThatAreForgotten() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                client.lock("a", TTL).acquire().release()
                client.blocking
                    .lock("b", TTL.toJavaDuration())
                    .acquire()
                    .release()
                assertEquals(2, client.metrics().released)
                val blocking = client.blocking.metrics()
                assertEquals(listOf(2L, 2L), listOf(blocking.granted, blocking.released))
                forget(client)
                val counted =
                    withTimeout(1.minutes) {
                        once({ System.gc().let { client.metrics() } }) { it.abandoned == 1L }
                    }
                assertEquals(3, counted.granted)
            }
        }

    @Test
    fun severalServersAreOneAttempt() =
        runBlocking {
            Tallylock.connectRedlock(listOf("memory://", "memory://", "memory://")).use { redlock ->
                val lease = redlock.lock("l", TTL).acquire()
                refused<BusyException> { redlock.lock("l", TTL).acquire() }
                lease.release()
                val counted = redlock.metrics()
                assertEquals(listOf(1L, 1L, 2L, 1L), counted.run { listOf(granted, busy, attempts, released) })
                assertEquals(counted.released, redlock.blocking.metrics().released)
            }
        }

    @Test
    fun theExampleOfTheDocumentationRuns() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                client.lock("invoice:42", ttl = 30.seconds).withLock { }
                val metrics = client.metrics() // numbers that only grow, as an exporter wants them; sends nothing
                println("waited ${metrics.waited}, held for ${metrics.longestHold} at most, lost ${metrics.lost.total}")
                assertEquals(1, metrics.released)
            }
        }

    @ParameterizedTest
    @EnumSource
    fun aClosedClientHasNone(face: Face) {
        val client = runBlocking { face.connect("memory://") }
        client.close()
        assertThrows(ClosedException::class.java) { client.metrics() }
    }

    private suspend fun forget(client: Client) {
        client.lock("c", TTL).acquire()
    }

    private suspend fun FaceClient.metricsOnce(isThere: (Metrics) -> Boolean): Metrics =
        withTimeout(2.minutes) { once(::metrics, isThere) }

    private suspend fun once(
        look: () -> Metrics,
        isThere: (Metrics) -> Boolean,
    ): Metrics {
        while (true) {
            look().let { if (isThere(it)) return it }
            delay(5.milliseconds)
        }
    }

    private inline fun <reified E : TallylockException> refused(crossinline verb: suspend () -> Unit) {
        assertThrows(E::class.java) { runBlocking { verb() } }
    }

    private companion object {
        val TTL = 60.seconds

        /** What is left of it for its holder, whose clock may be another by this much. */
        val VALID = TTL - 602.milliseconds

        val NOTHING =
            Metrics(
                granted = 0,
                busy = 0,
                cancelled = 0,
                failed = 0,
                attempts = 0,
                waited = Duration.ZERO,
                longestWait = Duration.ZERO,
                adopted = 0,
                released = 0,
                transferred = 0,
                abandoned = 0,
                lost = Losses(expired = 0, takenOver = 0, unreachable = 0),
                held = Duration.ZERO,
                longestHold = Duration.ZERO,
                renewals = 0,
                failedRenewals = 0,
                smallestMargin = null,
                stolen = 0,
                healed = 0,
            )
    }
}
