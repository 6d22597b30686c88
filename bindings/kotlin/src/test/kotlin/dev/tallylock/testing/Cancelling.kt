package dev.tallylock.testing

import dev.tallylock.Lease
import dev.tallylock.Lock
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import org.junit.jupiter.api.Assertions.assertTrue
import java.util.concurrent.atomic.AtomicReference
import kotlin.random.Random
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.minutes

/** When to cancel, in microseconds: how long a call takes here is found out by being too late and too early. */
class CancelPoints(private val random: Random) {
    private var longest = FIRST_SPIN
    private var late = 0
    private var early = 0

    fun next(): Int = random.nextInt(longest)

    fun met(wasLate: Boolean) {
        if (wasLate) late += 1 else early += 1
        val aim = if (wasLate) longest / 10 * 9 else longest / 10 * 11
        longest = aim.coerceIn(SHORTEST_SPIN, MOST_PATIENT_SPIN)
    }

    fun assertSpread() = assertTrue(late > 0 && early > 0, "$late came too late, $early did not")

    private companion object {
        // How long it is spun at most before a cancel: to begin with, and within which bounds later.
        const val FIRST_SPIN = 1_500
        const val SHORTEST_SPIN = 20
        const val MOST_PATIENT_SPIN = 200_000
    }
}

/** An acquire in a coroutine of its own. A lease that it was given is kept, also where the coroutine ends as cancelled. */
class Acquiring(
    scope: CoroutineScope,
    lock: Lock,
) {
    private val given = AtomicReference<Lease>()
    private val job = scope.launch { given.set(lock.acquire(wait = 1.minutes)) }

    /** Cancels it, and releases what it was given; says whether that was anything. */
    suspend fun cancel(): Boolean {
        job.cancelAndJoin()
        val lease = given.get() ?: return false
        lease.release()
        return true
    }
}

/** Waits without giving the processor away. */
fun spin(micros: Int) {
    val until = System.nanoTime() + micros.microseconds.inWholeNanoseconds
    while (System.nanoTime() < until) Thread.onSpinWait()
}
