package dev.tallylock.blocking

import dev.tallylock.TallylockException
import dev.tallylock.ffi.lockAcquire
import dev.tallylock.ffi.submitLockAcquire
import dev.tallylock.internal.LockHandle
import dev.tallylock.internal.toMicros
import java.time.Duration

/**
 * [dev.tallylock.Lock] with blocking verbs. Made by [Client.lock]; may be shared by threads, each of which acquires a
 * lease of its own.
 */
public class Lock internal constructor(private val handle: LockHandle) {
    /**
     * Acquires the lock. A thread that is interrupted while it waits leaves no lock behind.
     *
     * @param wait how long to wait while another holds it, up to 10 years; zero for one try
     * @return a lease, to be [released][Lease.release]; one that is forgotten lasts until its TTL ends
     * @throws dev.tallylock.BusyException if another held it until the end of [wait]
     * @throws dev.tallylock.InvalidArgumentException if [wait] is out of bounds; nothing is sent
     * @throws TallylockException as every call: `wrong_type`, `timeout`, `unavailable`, `read_only`, `forbidden`,
     *   `out_of_memory`, `unsupported`, `closed`
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun acquire(wait: Duration = Duration.ZERO): Lease {
        val session = handle.session
        val lease =
            if (wait.isZero) {
                session.call { client -> lockAcquire(client, handle.key, handle.ttlMicros) }
            } else {
                session
                    .awaitParked { client, ticket ->
                        submitLockAcquire(client, ticket, handle.key, handle.ttlMicros, wait.toMicros())
                    }.toLease()
            }
        return Lease(handle.granted(lease))
    }

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
