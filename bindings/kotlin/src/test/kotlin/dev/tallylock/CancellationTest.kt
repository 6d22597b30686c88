package dev.tallylock

import dev.tallylock.testing.FaultProxy
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import kotlinx.coroutines.CoroutineScope
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
import kotlin.time.Duration.Companion.microseconds
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
                val points = Points(random)
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
                val points = Points(random)
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
            val points = Points(random)
            repeat(ROUNDS) {
                val outcome = AtomicReference<Result<Unit>>()
                val thread =
                    Thread {
                        outcome.set(runCatching { lock.acquire(10.seconds.toJavaDuration()).release() })
                    }
                thread.start()
                spin(points.next())
                thread.interrupt()
                thread.join()
                val failure = outcome.get().exceptionOrNull()
                if (failure != null) assertEquals(InterruptedException::class, failure::class)
                points.met(wasLate = failure == null)
                lock.acquire(10.seconds.toJavaDuration()).release()
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

    /** When to cancel, in microseconds: how long a call takes here is found out by being too late and too early. */
    private class Points(private val random: Random) {
        private var longest = LONGEST_SPIN
        private var late = 0
        private var early = 0

        fun next(): Int = random.nextInt(longest)

        fun met(wasLate: Boolean) {
            if (wasLate) late += 1 else early += 1
            val aim = if (wasLate) longest / 10 * 9 else longest / 10 * 11
            longest = aim.coerceIn(SHORTEST_SPIN, MOST_PATIENT_SPIN)
        }

        fun assertSpread() = assertTrue(late > 0 && early > 0, "$late came too late, $early did not")
    }

    /** An acquire in a coroutine of its own. A lease that it was given is kept, also where the coroutine ends as cancelled. */
    private class Acquiring(
        scope: CoroutineScope,
        lock: Lock,
    ) {
        private val given = AtomicReference<Lease>()
        private val job = scope.launch { given.set(lock.acquire(wait = 10.seconds)) }

        /** Cancels it, and releases what it was given; says whether that was anything. */
        suspend fun cancel(): Boolean {
            job.cancelAndJoin()
            val lease = given.get() ?: return false
            lease.release()
            return true
        }
    }

    /** What a cancelled acquire left would stay for ten minutes: this would wait in vain. */
    private suspend fun assertFree(client: Client) = client.lock(KEY, 10.minutes).acquire(wait = 10.seconds).release()

    private fun spin(micros: Int) {
        val until = System.nanoTime() + micros.microseconds.inWholeNanoseconds
        while (System.nanoTime() < until) Thread.onSpinWait()
    }

    private companion object {
        // A machine that is busy elsewhere may stall for seconds; a reply that is lost does not come at all.
        val PATIENT = 20.seconds
        const val KEY = "invoice:42"
        const val SEED = 20130131
        const val ROUNDS = 300

        // How long it is spun at most before a cancel, in microseconds: to begin with, and within which bounds later.
        const val LONGEST_SPIN = 1_500
        const val SHORTEST_SPIN = 20
        const val MOST_PATIENT_SPIN = 200_000
    }
}
