package dev.tallylock

import dev.tallylock.ffi.submitLockAcquire
import dev.tallylock.ffi.submitLockAdopt
import dev.tallylock.ffi.submitLockInspect
import dev.tallylock.ffi.submitLockSteal
import dev.tallylock.internal.LockHandle
import dev.tallylock.internal.cancellingOnLoss
import dev.tallylock.internal.lending
import dev.tallylock.internal.toHolder
import dev.tallylock.internal.toLoggedFence
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toUtf8
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.withContext
import kotlin.time.Duration

/**
 * A lock: the thing named. Made by [Client.lock] or [Redlock.lock]. A handle is for one holder at a time: while a [Lease] that it acquired is
 * ours, it acquires no other. Coroutines that are to wait for each other take a handle each, which costs nothing.
 */
public class Lock internal constructor(private val handle: LockHandle) {
    /**
     * Acquires the lock. A coroutine that is cancelled meanwhile leaves no lock behind. A lease that was returned is the
     * caller's, who may be cancelled before it is used, as in `async { acquire() }`: [withLock] has no such gap.
     *
     * @param wait how long to wait while another holds it, up to 10 years; zero for one try
     * @return a lease, to be [released][Lease.release]; one that is forgotten is renewed until it is collected, and then lasts
     *   until its TTL ends
     * @throws BusyException if another held it until the end of [wait]
     * @throws AlreadyHeldException at once, if this handle holds it
     * @throws WrongTypeException if the key holds something that is not a string
     * @throws InvalidArgumentException if [wait] is out of bounds; nothing is sent
     * @throws TallylockException as every call: `timeout`, `unavailable`, `read_only`, `forbidden`, `out_of_memory`,
     *   `unsupported`, `closed`
     */
    public suspend fun acquire(wait: Duration = Duration.ZERO): Lease {
        handle.checkFree()
        val lease =
            handle.session
                .await { client, ticket ->
                    lending {
                        submitLockAcquire(
                            client,
                            ticket,
                            lend(handle.key),
                            handle.ttlMicros,
                            handle.intervalMicros,
                            handle.maxHoldMicros,
                            wait.toMicros(),
                        )
                    }
                }.toLease()
        return Lease(handle.granted(lease))
    }

    /**
     * Takes over a lease that another process or coroutine gave away by [Lease.transfer], with its fence.
     *
     * @param token what `transfer` returned
     * @return the lease, for this lock's TTL from now, to be [released][Lease.release]
     * @throws LostException if the lock is no longer held by this token
     * @throws AlreadyHeldException if this handle holds it
     * @throws InvalidArgumentException if it is no token; nothing is sent
     * @throws TallylockException as every call: `unavailable`, `outcome_unknown`, `read_only`, `forbidden`, `unsupported`,
     *   `closed`
     */
    public suspend fun adopt(token: String): Lease {
        handle.checkFree()
        val lease =
            handle.session
                .await { client, ticket ->
                    lending {
                        submitLockAdopt(
                            client,
                            ticket,
                            null,
                            lend(handle.key),
                            handle.ttlMicros,
                            handle.intervalMicros,
                            handle.maxHoldMicros,
                            lend(token.toUtf8(handle.key)),
                        )
                    }
                }.toAdoptedLease()
        return Lease(handle.granted(lease))
    }

    /**
     * Looks at who holds the lock, a holder of another library too. Changes nothing.
     *
     * @return the holder; `null` if nobody holds it
     * @throws WrongTypeException if the key holds something that is not a string
     * @throws UnsupportedException if the lock is on several servers
     */
    public suspend fun inspect(): Holder? =
        handle.session
            .await {
                client,
                ticket,
                ->
                lending { submitLockInspect(client, ticket, lend(handle.key), handle.ttlMicros) }
            }.toBytes()
            .toHolder()

    /**
     * Takes the lock away from the holder of a token and wakes those who wait. For operators: the holder is not asked. Never
     * repeated by itself.
     *
     * The fence is counted up, so that the next holder's is larger than that of the one who loses the lock. With the fence that
     * is returned, a guarded write or a fenced drain shuts that one out before there is a next one.
     *
     * @param expectedToken the [token][Holder.token] that [inspect] gave; if another holds the lock by now, nothing is changed
     * @param reason why, for people: the [System.Logger] `dev.tallylock` has it as a warning, with the holder's label, and
     *   [Client.stolen] counts
     * @return the fence of the lock now, an unsigned number; `null` if the token holds it no more
     * @throws InvalidArgumentException if the reason says nothing; nothing is sent
     * @throws OutcomeUnknownException if the reply was lost: inspect the lock again
     * @throws WrongTypeException if the lock or its fence is something that is not a string
     * @throws NotAnIntegerException if the fence is no number
     * @throws UnsupportedException if the lock is on several servers
     */
    public suspend fun steal(
        expectedToken: ByteArray,
        reason: String,
    ): Long? =
        handle.session
            .await { client, ticket ->
                lending {
                    submitLockSteal(
                        client,
                        ticket,
                        lend(handle.key),
                        handle.ttlMicros,
                        lend(expectedToken),
                        lend(reason.toUtf8(handle.key)),
                    )
                }
            }.toBytes()
            .toLoggedFence()

    /** The same with a token that is a text. */
    public suspend fun steal(
        expectedToken: String,
        reason: String,
    ): Long? = steal(expectedToken.toUtf8(handle.key), reason)

    /**
     * Acquires the lock, runs [body] and releases the lock, also if [body] throws or is cancelled. What [body] throws
     * is what is thrown, with the failure of the release, if any, among its suppressed exceptions.
     *
     * @param wait how long to wait while another holds it, up to 10 years; zero for one try
     * @param cancelOnLoss whether [body] is cancelled when the lease is lost, no later than at its deadline; what is thrown then
     *   is [LostException]
     * @param body what to do while the lock is held; it should [ensure][Lease.ensure] that it still is
     * @return what [body] returns
     * @throws TallylockException as [acquire] does, before [body], and as [Lease.release] does, after it
     */
    public suspend fun <T> withLock(
        wait: Duration = Duration.ZERO,
        cancelOnLoss: Boolean = false,
        body: suspend (lease: Lease) -> T,
    ): T {
        val lease = acquire(wait)
        val result =
            try {
                if (cancelOnLoss) lease.handle.cancellingOnLoss { body(lease) } else body(lease)
            } catch (failure: Throwable) {
                try {
                    withContext(NonCancellable) { lease.release() }
                } catch (second: TallylockException) {
                    failure.addSuppressed(second)
                }
                throw failure
            }
        withContext(NonCancellable) { lease.release() }
        return result
    }
}
