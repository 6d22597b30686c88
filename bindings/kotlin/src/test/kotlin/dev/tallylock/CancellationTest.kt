package dev.tallylock

import dev.tallylock.testing.Acquiring
import dev.tallylock.testing.CancelPoints
import dev.tallylock.testing.FaultProxy
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import dev.tallylock.testing.spin
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.util.concurrent.atomic.AtomicReference
import kotlin.random.Random
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.toJavaDuration

/** Calls that are given up: no lock stays behind, and no reply goes to another caller. */
class CancellationTest {
    @ParameterizedTest
    @EnumSource
    fun acquiresCancelledAtRandomPointsLeaveNoLock(kind: ServerKind) {
        val server = TestServer.empty(kind)
        val random = Random(SEED)
        runBlocking(Dispatchers.Default) {
            Tallylock.connect(server.url, PATIENT).use { client ->
                val lock = client.lock(KEY, 10.minutes)
                val points = CancelPoints(random)
                repeat(ROUNDS) {
                    val acquiring = Acquiring(this, lock)
                    spin(points.next())
                    points.met(wasLate = acquiring.cancel())
                    assertFree(client)
                }
                points.assertSpread()
            }
        }
        assertEquals(null, server.bystander.get(KEY))
    }

    @ParameterizedTest
    @EnumSource
    fun waitersCancelledAtRandomPointsLeaveNoLock(kind: ServerKind) {
        val server = TestServer.empty(kind)
        val random = Random(SEED)
        runBlocking(Dispatchers.Default) {
            Tallylock.connect(server.url, PATIENT).use { client ->
                val lock = client.lock(KEY, 10.minutes)
                val points = CancelPoints(random)
                repeat(ROUNDS / 4) {
                    val lease = lock.acquire()
                    val waiters = List(3) { Acquiring(this, client.lock(KEY, 10.minutes)) }
                    delay(random.nextInt(30).milliseconds)
                    val releasing = launch { lease.release() }
                    // Without this there would be none to whom it could be granted before they are cancelled.
                    spin(points.next())
                    points.met(wasLate = waiters.count { it.cancel() } > 0)
                    releasing.join()
                    assertFree(client)
                }
                points.assertSpread()
            }
        }
        assertEquals(null, server.bystander.get(KEY))
    }

    @ParameterizedTest
    @EnumSource
    fun anAcquireCancelledWhileItsReplyIsOnTheWayIsUndone(kind: ServerKind) {
        val server = TestServer.empty(kind)
        FaultProxy(server).use { proxy ->
            runBlocking(Dispatchers.Default) {
                Tallylock.connect(proxy.url, PATIENT).use { client ->
                    client.lock(KEY, 10.minutes).acquire().release()
                    proxy.holdMatching(KEY)
                    val acquiring = async { client.lock(KEY, 10.minutes).acquire() }
                    proxy.awaitHeld(1)
                    assertTrue(server.bystander.exists(KEY), "the server has granted it")
                    acquiring.cancelAndJoin()
                    proxy.go()
                    Tallylock.connect(server.url).use { other -> assertFree(other) }
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    fun acquiresInterruptedAtRandomPointsLeaveNoLock(kind: ServerKind) {
        val server = TestServer.empty(kind)
        val random = Random(SEED)
        Tallylock.connectBlocking(server.url, PATIENT.toJavaDuration()).use { client ->
            val lock = client.lock(KEY, 10.minutes.toJavaDuration())
            val points = CancelPoints(random)
            repeat(ROUNDS) {
                val outcome = AtomicReference<Result<Unit>>()
                val thread =
                    Thread {
                        outcome.set(runCatching { lock.acquire(PATIENT.toJavaDuration()).release() })
                    }
                thread.start()
                spin(points.next())
                thread.interrupt()
                thread.join()
                val failure = outcome.get().exceptionOrNull()
                if (failure != null) assertEquals(InterruptedException::class, failure::class)
                points.met(wasLate = failure == null)
                lock.acquire(PATIENT.toJavaDuration()).release()
            }
            points.assertSpread()
        }
        assertEquals(null, server.bystander.get(KEY))
    }

    @ParameterizedTest
    @EnumSource
    fun cancelledCallsLeaveNoReplyToAnotherCaller(kind: ServerKind) {
        val server = TestServer.empty(kind)
        val random = Random(SEED)
        val keys = List(16) { "session:$it:ctx" }
        keys.forEach { server.plant(it, "of $it") }
        runBlocking(Dispatchers.Default) {
            Tallylock.connect(server.url, PATIENT).use { client ->
                repeat(ROUNDS) {
                    val gets = keys.map { key -> key to async { client.value(key).get()?.decodeToString() } }
                    spin(random.nextInt(LONGEST_SPIN))
                    gets.filter { random.nextBoolean() }.forEach { (_, get) -> get.cancel() }
                    gets.forEach { (key, get) ->
                        get.join()
                        if (!get.isCancelled) assertEquals("of $key", get.await())
                    }
                }
            }
        }
    }

    /** What a cancelled acquire left would stay for ten minutes: this would wait in vain. */
    private suspend fun assertFree(client: Client) = client.lock(KEY, 10.minutes).acquire(wait = PATIENT).release()

    private companion object {
        // A machine that is busy elsewhere may stall for seconds; a reply that is lost does not come at all.
        val PATIENT = 60.seconds
        const val KEY = "invoice:42"
        const val SEED = 20130131
        const val ROUNDS = 300

        // In microseconds.
        const val LONGEST_SPIN = 1_500
    }
}
