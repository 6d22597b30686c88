package dev.tallylock.internal

import dev.tallylock.ClosedException
import dev.tallylock.LeaseState
import dev.tallylock.LostException
import dev.tallylock.ffi.leaseWait
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.ExperimentalForInheritanceCoroutinesApi
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.flow.FlowCollector
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.job
import java.lang.ref.Reference
import java.util.concurrent.CompletableFuture
import java.util.concurrent.atomic.AtomicReference

/** How a lease has ended, once somebody has found out. It does not keep the lease. */
internal class LeaseEnd(private val lease: ULong) {
    private val states = MutableStateFlow<LeaseState>(LeaseState.Held)
    private val firstEnd = CompletableFuture<LeaseState>()

    /** The last state that was found out. */
    val known: StateFlow<LeaseState> get() = states

    /** The first state that was not [LeaseState.Held]. */
    val first: CompletableFuture<LeaseState> get() = firstEnd

    /** Takes in what has become of the lease. */
    fun tell(state: LeaseState) {
        states.update { known -> if (known is LeaseState.Lost) known else state }
        firstEnd.complete(state)
    }

    /** Takes in how the call that waits for the loss has ended. */
    fun told(outcome: Outcome) {
        try {
            outcome.toUnit()
            tell(LeaseState.LetGo)
        } catch (lost: LostException) {
            tell(LeaseState.Lost(lost))
        } catch (_: RuntimeException) {
            // The client is closed, or broken.
            watchOnAThread()
        }
    }

    /** Waits for the end on a thread: a closed client brings nothing any more, and the lease may be ours for a while yet. */
    fun watchOnAThread(): Unit = Thread({ tell(awaited()) }, "tallylock-lost").apply { isDaemon = true }.start()

    private fun awaited(): LeaseState =
        try {
            while (translated { leaseWait(lease, LOOK_MILLIS) }) {
                // It is ours.
            }
            LeaseState.LetGo
        } catch (lost: LostException) {
            LeaseState.Lost(lost)
        } catch (_: ClosedException) {
            LeaseState.LetGo
        }

    private companion object {
        // So long the thread looks away at the longest once the lease was forgotten.
        const val LOOK_MILLIS = 1_000uL
    }
}

/** A lease's state, by our clock at the moment of the look. It keeps the lease. */
@OptIn(ExperimentalForInheritanceCoroutinesApi::class)
internal class LeaseStates(private val lease: LeaseHandle) : StateFlow<LeaseState> {
    override val value: LeaseState get() = lease.state()

    override val replayCache: List<LeaseState> get() = listOf(value)

    override suspend fun collect(collector: FlowCollector<LeaseState>): Nothing =
        try {
            lease.watched().known.collect(collector)
        } finally {
            Reference.reachabilityFence(lease)
        }
}

/** Runs [body], and cancels it when the lease is lost; that is what is thrown then. */
internal suspend fun <T> LeaseHandle.cancellingOnLoss(body: suspend () -> T): T {
    val loss = AtomicReference<LostException>()
    try {
        return coroutineScope {
            val job = currentCoroutineContext().job
            watched().first.thenAccept { end ->
                if (end is LeaseState.Lost) {
                    loss.set(end.exception)
                    job.cancel(CancellationException(end.exception.message, end.exception))
                }
            }
            body()
        }
    } catch (cancelled: CancellationException) {
        // Who was cancelled by somebody else, too, is cancelled.
        currentCoroutineContext().ensureActive()
        throw loss.get() ?: cancelled
    }
}
