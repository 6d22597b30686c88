package dev.tallylock.internal

import dev.tallylock.ffi.CallException
import dev.tallylock.ffi.cancel
import dev.tallylock.ffi.close
import dev.tallylock.ffi.completionsTake
import dev.tallylock.ffi.leaseAbandon
import dev.tallylock.ffi.leaseFree
import kotlinx.coroutines.suspendCancellableCoroutine
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicLong
import kotlin.time.Duration.Companion.hours

/**
 * The calls of one client that run in the background, and the thread that hears of their ends.
 *
 * Each call has a ticket and a waiter in [waiting]. Whoever takes the waiter out decides how the call ends: the thread
 * that brings its outcome, or the caller who gives up. So an outcome goes to the caller exactly once, or to [discard].
 */
internal class Completions(private val client: ULong) {
    private val waiting = ConcurrentHashMap<Long, Waiter>()
    private val lastTicket = AtomicLong()
    private val isReceiving = AtomicBoolean()

    /**
     * Submits a call and suspends until it has ended. If the coroutine is cancelled meanwhile, the call is given up: it
     * stops and undoes what it did.
     */
    suspend fun await(submit: (ticket: ULong) -> Unit): Outcome =
        suspendCancellableCoroutine { continuation ->
            val ticket =
                begin(submit) { outcome ->
                    // A coroutine that is cancelled before it goes on does not get to see the outcome.
                    continuation.resume(outcome) { _, unseen, _ -> discard(unseen) }
                }
            continuation.invokeOnCancellation { giveUp(ticket) }
        }

    /**
     * Submits a call and suspends until it has ended. If the coroutine is cancelled meanwhile, the call runs on, and
     * [unseen] has what it ended with: for outcomes that are to be cleaned up after.
     */
    suspend fun awaitOrLeave(
        submit: (ticket: ULong) -> Unit,
        unseen: (outcome: Outcome) -> Unit,
    ): Outcome =
        suspendCancellableCoroutine { continuation ->
            begin(submit) { outcome -> continuation.resume(outcome) { _, late, _ -> unseen(late) } }
        }

    /**
     * Submits a call and parks the calling thread until it has ended. If the thread is interrupted meanwhile, the call
     * is given up: it stops and undoes what it did.
     */
    fun awaitParked(submit: (ticket: ULong) -> Unit): Outcome {
        val future = CompletableFuture<Outcome>()
        val ticket = begin(submit) { future.complete(it) }
        try {
            return future.get()
        } catch (interrupted: InterruptedException) {
            if (!giveUp(ticket)) {
                // Its end came first, and is in the future or about to be.
                discard(future.join())
            }
            throw interrupted
        }
    }

    /**
     * Submits a call and parks the calling thread until it has ended, however often the thread is interrupted meanwhile; it is
     * interrupted afterwards then.
     */
    fun awaitThrough(submit: (ticket: ULong) -> Unit): Outcome {
        val future = CompletableFuture<Outcome>()
        begin(submit) { future.complete(it) }
        return future.join()
    }

    /** Submits a call, and brings its outcome to [told], which does not throw. */
    fun submit(
        submit: (ticket: ULong) -> Unit,
        told: (outcome: Outcome) -> Unit,
    ) {
        begin(submit, told)
    }

    private fun begin(
        submit: (ticket: ULong) -> Unit,
        waiter: Waiter,
    ): Long {
        val ticket = lastTicket.incrementAndGet()
        // Before it is submitted: its end may come at once.
        waiting[ticket] = waiter
        try {
            translated { submit(ticket.toULong()) }
        } catch (refused: Throwable) {
            waiting.remove(ticket)
            throw refused
        }
        if (isReceiving.compareAndSet(false, true)) {
            Thread(::receive, "tallylock-completions-$client").apply { isDaemon = true }.start()
        }
        return ticket
    }

    /** Gives a call up, unless its end came first. */
    private fun giveUp(ticket: Long): Boolean {
        waiting.remove(ticket) ?: return false
        cancel(client, ticket.toULong())
        return true
    }

    /** Brings outcomes to their waiters until the client is closed and the last has come. */
    private fun receive() {
        try {
            receiveUntilClosed()
        } catch (_: CallException) {
            // Closed: who waits still is about to be refused.
        } catch (broken: Throwable) {
            // Nobody would hear of any outcome again: no further call may be let in.
            close(client)
            waiting.keys.forEach { waiting.remove(it)?.end(Outcome.Broken(broken)) }
        }
    }

    private fun receiveUntilClosed(): Nothing {
        while (true) {
            val ticket = DirectCalls.completionsWaitInteger(client, LONGEST_WAIT_MILLIS)
            if (ticket == NO_TICKET) {
                Records(completionsTake(client)).forEach(::bring)
            } else {
                bring(ticket, Outcome.Integer(DirectCalls.completionInteger(client, ticket)))
            }
        }
    }

    private fun bring(
        ticket: Long,
        outcome: Outcome,
    ) {
        waiting.remove(ticket)?.end(outcome) ?: discard(outcome)
    }

    /** Who waits for a call's outcome. */
    private fun interface Waiter {
        fun end(outcome: Outcome)
    }

    private companion object {
        private const val NO_TICKET = 0L
        private val LONGEST_WAIT_MILLIS = 1.hours.inWholeMilliseconds
    }
}

/**
 * Nobody will hear of this outcome any more: a lease in it is given back, even if the client is closed by now. One that was
 * another's is left to who has its token.
 */
private fun discard(outcome: Outcome) {
    when (outcome) {
        is Outcome.Granted -> leaseAbandon(outcome.lease)
        is Outcome.Adopted -> leaseFree(outcome.lease)
        else -> Unit
    }
}
