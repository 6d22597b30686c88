package dev.tallylock.blocking

import dev.tallylock.TallylockException
import dev.tallylock.ffi.lockAcquire
import dev.tallylock.ffi.lockAdopt
import dev.tallylock.ffi.lockInspect
import dev.tallylock.ffi.lockSteal
import dev.tallylock.ffi.submitLockAcquire
import dev.tallylock.internal.LockHandle
import dev.tallylock.internal.lending
import dev.tallylock.internal.toHolder
import dev.tallylock.internal.toLoggedFence
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toUtf8
import java.time.Duration

/**
 * [dev.tallylock.Lock] with blocking verbs. Made by [Client.lock] or [Redlock.lock]. A handle is for one holder at a time: while a [Lease] that it
 * acquired is ours, it acquires no other. Threads that are to wait for each other take a handle each, which costs nothing.
 */
public class Lock internal constructor(private val handle: LockHandle) {
    /**
     * Acquires the lock. A thread that is interrupted while it waits leaves no lock behind.
     *
     * @param wait how long to wait while another holds it, up to 10 years; zero for one try
     * @return a lease, to be [released][Lease.release]; one that is forgotten is renewed until it is collected, and then lasts
     *   until its TTL ends
     * @throws dev.tallylock.BusyException if another held it until the end of [wait]
     * @throws dev.tallylock.AlreadyHeldException at once, if this handle holds it
     * @throws dev.tallylock.InvalidArgumentException if [wait] is out of bounds; nothing is sent
     * @throws TallylockException as every call: `wrong_type`, `timeout`, `unavailable`, `read_only`, `forbidden`,
     *   `out_of_memory`, `unsupported`, `closed`
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun acquire(wait: Duration = Duration.ZERO): Lease {
        handle.checkFree()
        val lease = if (wait.isZero) acquireAtOnce() else acquireParked(wait.toMicros())
        return Lease(handle.granted(lease))
    }

    /**
     * Takes over a lease that another process or thread gave away by [Lease.transfer], with its fence.
     *
     * @param token what `transfer` returned
     * @return the lease, for this lock's TTL from now, to be [released][Lease.release]
     * @throws dev.tallylock.LostException if the lock is no longer held by this token
     * @throws dev.tallylock.AlreadyHeldException if this handle holds it
     * @throws dev.tallylock.InvalidArgumentException if it is no token; nothing is sent
     * @throws TallylockException as every call: `unavailable`, `outcome_unknown`, `read_only`, `forbidden`, `unsupported`,
     *   `closed`
     */
    public fun adopt(token: String): Lease {
        handle.checkFree()
        val lease =
            handle.session.call { client ->
                lending {
                    lockAdopt(
                        client,
                        null,
                        lend(handle.key),
                        handle.ttlMicros,
                        handle.intervalMicros,
                        handle.maxHoldMicros,
                        lend(token.toUtf8(handle.key)),
                    )
                }
            }
        return Lease(handle.granted(lease))
    }

    /**
     * Looks at who holds the lock, a holder of another library too. Changes nothing.
     *
     * @return the holder; `null` if nobody holds it
     * @throws dev.tallylock.WrongTypeException if the key holds something that is not a string
     * @throws dev.tallylock.UnsupportedException if the lock is on several servers
     */
    public fun inspect(): Holder? =
        handle.session
            .call { client -> lending { lockInspect(client, lend(handle.key), handle.ttlMicros) } }
            .toHolder()
            ?.let(::Holder)

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
     * @throws dev.tallylock.InvalidArgumentException if the reason says nothing; nothing is sent
     * @throws dev.tallylock.OutcomeUnknownException if the reply was lost: inspect the lock again
     * @throws dev.tallylock.WrongTypeException if the lock or its fence is something that is not a string
     * @throws dev.tallylock.NotAnIntegerException if the fence is no number
     * @throws dev.tallylock.UnsupportedException if the lock is on several servers
     */
    public fun steal(
        expectedToken: ByteArray,
        reason: String,
    ): Long? =
        handle.session
            .call { client ->
                lending {
                    lockSteal(
                        client,
                        lend(handle.key),
                        handle.ttlMicros,
                        lend(expectedToken),
                        lend(reason.toUtf8(handle.key)),
                    )
                }
            }.toLoggedFence()

    /** The same with a token that is a text. */
    public fun steal(
        expectedToken: String,
        reason: String,
    ): Long? = steal(expectedToken.toUtf8(handle.key), reason)

    /**
     * Acquires the lock, runs [body] and releases the lock, also if [body] throws. What [body] throws is what is
     * thrown, with the failure of the release, if any, among its suppressed exceptions.
     *
     * @param wait how long to wait while another holds it, up to 10 years; zero for one try
     * @param body what to do while the lock is held; it should [ensure][Lease.ensure] that it still is
     * @return what [body] returns
     * @throws TallylockException as [acquire] does, before [body], and as [Lease.release] does, after it
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    @Throws(Exception::class)
    public fun <T> withLock(
        wait: Duration,
        body: LeaseBody<T>,
    ): T {
        val lease = acquire(wait)
        val result =
            try {
                body.run(lease)
            } catch (failure: Throwable) {
                try {
                    lease.release()
                } catch (second: TallylockException) {
                    failure.addSuppressed(second)
                }
                throw failure
            }
        lease.release()
        return result
    }

    /** The same with one try. */
    @Throws(Exception::class)
    public fun <T> withLock(body: LeaseBody<T>): T = withLock(Duration.ZERO, body)

    private fun acquireAtOnce(): ULong =
        handle.session.call { client ->
            lending {
                lockAcquire(client, lend(handle.key), handle.ttlMicros, handle.intervalMicros, handle.maxHoldMicros)
            }
        }

    private fun acquireParked(waitMicros: Long): ULong =
        handle.session
            .awaitParked { client, ticket ->
                lending {
                    submitLockAcquire(
                        client,
                        ticket,
                        lend(handle.key),
                        handle.ttlMicros,
                        handle.intervalMicros,
                        handle.maxHoldMicros,
                        waitMicros,
                    )
                }
            }.toLease()
}

/** What [Lock.withLock] does while the lock is held. */
public fun interface LeaseBody<T> {
    /**
     * Does it.
     *
     * @param lease the lease that is held meanwhile
     * @return what [Lock.withLock] is to return
     * @throws Exception whatever it likes
     */
    @Throws(Exception::class)
    public fun run(lease: Lease): T
}
