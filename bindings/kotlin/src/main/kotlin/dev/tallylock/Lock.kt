package dev.tallylock

import dev.tallylock.ffi.submitLockAcquire
import dev.tallylock.internal.LockHandle
import dev.tallylock.internal.toMicros
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.withContext
import kotlin.time.Duration

/**
 * A lock: the thing named. Made by [Client.lock]; may be shared by coroutines, each of which acquires a [Lease] of its
 * own.
 */
public class Lock internal constructor(private val handle: LockHandle) {
    /**
     * Acquires the lock. A coroutine that is cancelled meanwhile leaves no lock behind. A lease that was returned is the
     * caller's, who may be cancelled before it is used, as in `async { acquire() }`: [withLock] has no such gap.
     *
     * @param wait how long to wait while another holds it, up to 10 years; zero for one try
     * @return a lease, to be [released][Lease.release]; one that is forgotten lasts until its TTL ends
     * @throws BusyException if another held it until the end of [wait]
     * @throws WrongTypeException if the key holds something that is not a string
     * @throws InvalidArgumentException if [wait] is out of bounds; nothing is sent
     * @throws TallylockException as every call: `timeout`, `unavailable`, `read_only`, `forbidden`, `out_of_memory`,
     *   `unsupported`, `closed`
     */
    public suspend fun acquire(wait: Duration = Duration.ZERO): Lease {
        val lease =
            handle.session
                .await { client, ticket ->
                    submitLockAcquire(client, ticket, handle.key, handle.ttlMicros, wait.toMicros())
                }.toLease()
        return Lease(handle.granted(lease))
    }

    /**
     * Acquires the lock, runs [body] and releases the lock, also if [body] throws or is cancelled. What [body] throws
     * is what is thrown, with the failure of the release, if any, among its suppressed exceptions.
     *
     * @param wait how long to wait while another holds it, up to 10 years; zero for one try
     * @param body what to do while the lock is held; it should [ensure][Lease.ensure] that it still is
     * @return what [body] returns
     * @throws TallylockException as [acquire] does, before [body], and as [Lease.release] does, after it
     */
    public suspend fun <T> withLock(
        wait: Duration = Duration.ZERO,
        body: suspend (lease: Lease) -> T,
    ): T {
        val lease = acquire(wait)
        val result =
            try {
                body(lease)
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
