package dev.tallylock

import dev.tallylock.internal.Met
import dev.tallylock.internal.PassHandle
import dev.tallylock.internal.SweeperHandle
import dev.tallylock.internal.log
import dev.tallylock.internal.neverBegun
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import kotlin.time.Duration

/**
 * Bills counters before they end, or once they hold much: in passes, of which one at a time is made under its lock. Made
 * by [Client.sweeper].
 *
 * What the callback does with the claim that it is given:
 *
 * - it returns: the claim is committed;
 * - it throws [RefusedException]: the claim is aborted, its units are in the counter again;
 * - it throws another [Exception]: the claim stays open, is told in the report, and is handed out again by the next pass,
 *   to whoever makes it. So is the claim of a process that died.
 *
 * So it may be given the same claim again, and bills it once: by a row whose key is the claim's id
 * (`INSERT ... ON CONFLICT DO NOTHING`). It is done before the lock's TTL is over.
 */
public class Sweeper internal constructor(private val handle: SweeperHandle) {
    /**
     * Makes one pass.
     *
     * @param bill is called with each claim, one after the other. If the coroutine is cancelled in it, or it throws an
     *   [Error], the claim stays open and the lock is released
     * @return what was done; what failed is in it and is not thrown
     * @throws BusyException if another sweeper is at work until the wait for the lock is over
     * @throws TallylockException as [Lock.acquire] does
     */
    public suspend fun sweep(bill: suspend (claim: ClaimToBill) -> Unit): SweepReport = sweepUntil(null, bill)

    /**
     * Makes passes until [stop] is completed. What is in the callback's hand then is finished, and the lock released.
     *
     * @param every the pause between two passes
     * @param stop to be completed by another coroutine; if `null`, only cancelling or an exception ends it
     * @param onReport is given the report of each pass, also of one that could not begin; what it throws ends the running.
     *   If not given, failures are logged as errors of the logger `dev.tallylock.sweeper`. A pass that finds another sweeper
     *   at work has none
     * @param bill as for [sweep]
     * @throws ClosedException if the client is closed
     */
    public suspend fun run(
        every: Duration,
        stop: Job? = null,
        onReport: suspend (report: SweepReport) -> Unit = ::log,
        bill: suspend (claim: ClaimToBill) -> Unit,
    ) {
        val stopped = stop ?: Job(currentCoroutineContext()[Job])
        try {
            while (stopped.isActive) {
                reported(stopped, bill)?.let { onReport(it) }
                withTimeoutOrNull(every) { stopped.join() }
            }
        } finally {
            // It would keep the coroutine that it was made in.
            if (stop == null) stopped.cancel()
        }
    }

    private suspend fun reported(
        stop: Job,
        bill: suspend (claim: ClaimToBill) -> Unit,
    ): SweepReport? =
        try {
            sweepUntil(stop, bill)
        } catch (_: BusyException) {
            null
        } catch (closed: ClosedException) {
            throw closed
        } catch (failure: TallylockException) {
            neverBegun(failure)
        }

    private suspend fun sweepUntil(
        stop: Job?,
        bill: suspend (claim: ClaimToBill) -> Unit,
    ): SweepReport {
        val pass = handle.pass()
        try {
            handle.session.await(pass::begin).toLong()
            try {
                handOut(pass, stop, bill)
            } catch (failure: Throwable) {
                try {
                    withContext(NonCancellable) { handle.session.await(pass::end).toUnit() }
                } catch (second: TallylockException) {
                    failure.addSuppressed(second)
                }
                throw failure
            }
            try {
                withContext(NonCancellable) { handle.session.await(pass::end).toUnit() }
            } catch (failure: TallylockException) {
                pass.error = pass.error ?: failure
            }
            return pass.report()
        } finally {
            pass.abandon()
        }
    }

    private suspend fun handOut(
        pass: PassHandle,
        stop: Job?,
        bill: suspend (claim: ClaimToBill) -> Unit,
    ) {
        while (stop?.isActive != false) {
            val met =
                try {
                    pass.met(handle.session.await(pass::next))
                } catch (failure: TallylockException) {
                    pass.error = failure
                    return
                }
            when (met) {
                is Met.ToBill -> settle(pass, met.claim, bill)
                Met.Unusable -> {}
                Met.End -> return
            }
        }
    }

    private suspend fun settle(
        pass: PassHandle,
        claim: ClaimToBill,
        bill: suspend (claim: ClaimToBill) -> Unit,
    ) {
        try {
            val isBilled =
                try {
                    bill(claim)
                    true
                } catch (_: RefusedException) {
                    false
                }
            if (isBilled) {
                handle.session.await(pass::commit).toUnit()
            } else {
                handle.session.await(pass::abort).toLong()
            }
        } catch (cancelled: CancellationException) {
            // Its own time-out is the callback's failure; being cancelled is not.
            currentCoroutineContext().ensureActive()
            pass.failed(claim, cancelled)
        } catch (failure: Exception) {
            pass.failed(claim, failure)
        }
    }
}
