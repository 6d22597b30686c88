package dev.tallylock.blocking

import dev.tallylock.BusyException
import dev.tallylock.ClaimToBill
import dev.tallylock.ClosedException
import dev.tallylock.RefusedException
import dev.tallylock.SweepReport
import dev.tallylock.TallylockException
import dev.tallylock.internal.Met
import dev.tallylock.internal.PassHandle
import dev.tallylock.internal.SweeperHandle
import dev.tallylock.internal.log
import dev.tallylock.internal.neverBegun
import dev.tallylock.internal.toMicros
import java.time.Duration
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit

/**
 * [dev.tallylock.Sweeper] with blocking verbs: what is said of the callback there holds here. Made by [Client.sweeper].
 */
public class Sweeper internal constructor(private val handle: SweeperHandle) {
    /**
     * Makes one pass.
     *
     * @param bill is called with each claim, one after the other on this thread. If it throws [InterruptedException] or an
     *   [Error], the claim stays open and the lock is released
     * @return what was done; what else failed is in it and is not thrown
     * @throws BusyException if another sweeper is at work until the wait for the lock is over
     * @throws TallylockException as [Lock.acquire] does
     * @throws InterruptedException if the thread is interrupted; the claim in hand stays open and the lock is released
     */
    @Throws(InterruptedException::class)
    public fun sweep(bill: Bill): SweepReport = sweepUntil(CountDownLatch(1), bill)

    /**
     * Makes passes until [stop] has come to zero. What is in the callback's hand then is finished, and the lock released.
     *
     * @param every the pause between two passes
     * @param stop to be counted down by another thread, as in a shutdown hook
     * @param bill as for [sweep]
     * @param onReport is given the report of each pass, also of one that could not begin; what it throws ends the running.
     *   If not given, failures are logged as errors of the logger `dev.tallylock.sweeper`. A pass that finds another sweeper
     *   at work has none
     * @throws ClosedException if the client is closed
     * @throws InterruptedException if the thread is interrupted, as for [sweep]
     */
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun run(
        every: Duration,
        stop: CountDownLatch,
        bill: Bill,
        onReport: OnReport = OnReport(::log),
    ) {
        while (stop.isRunning()) {
            reported(stop, bill)?.let { onReport.take(it) }
            stop.await(every.toMicros(), TimeUnit.MICROSECONDS)
        }
    }

    private fun reported(
        stop: CountDownLatch,
        bill: Bill,
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

    private fun sweepUntil(
        stop: CountDownLatch,
        bill: Bill,
    ): SweepReport {
        val pass = handle.pass()
        try {
            handle.session.awaitParked(pass::begin).toLong()
            try {
                handOut(pass, stop, bill)
            } catch (failure: Throwable) {
                try {
                    handle.session.awaitParked(pass::end).toUnit()
                } catch (second: TallylockException) {
                    failure.addSuppressed(second)
                }
                throw failure
            }
            try {
                handle.session.awaitParked(pass::end).toUnit()
            } catch (failure: TallylockException) {
                pass.error = pass.error ?: failure
            }
            return pass.report()
        } finally {
            pass.abandon()
        }
    }

    private fun handOut(
        pass: PassHandle,
        stop: CountDownLatch,
        bill: Bill,
    ) {
        while (stop.isRunning()) {
            val met =
                try {
                    pass.met(handle.session.awaitParked(pass::next))
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

    private fun settle(
        pass: PassHandle,
        claim: ClaimToBill,
        bill: Bill,
    ) {
        try {
            val isBilled =
                try {
                    bill.bill(claim)
                    true
                } catch (_: RefusedException) {
                    false
                }
            if (isBilled) {
                handle.session.awaitParked(pass::commit).toUnit()
            } else {
                handle.session.awaitParked(pass::abort).toLong()
            }
        } catch (interrupted: InterruptedException) {
            throw interrupted
        } catch (failure: Exception) {
            pass.failed(claim, failure)
        }
    }

    private fun CountDownLatch.isRunning(): Boolean = count > 0
}

/** What a sweeper does with each claim: it bills it, under its id. */
public fun interface Bill {
    /**
     * Bills a claim.
     *
     * @param claim the claim, which may have been handed out before
     * @throws RefusedException if it is not billed: its units go back into the counter
     * @throws Exception whatever it likes: then the claim stays open for the next pass
     */
    @Throws(Exception::class)
    public fun bill(claim: ClaimToBill)
}

/** Who is told what a sweeper's passes have done. */
public fun interface OnReport {
    /** Takes the report of a pass; what it throws ends the running. */
    public fun take(report: SweepReport)
}
