package dev.tallylock

import dev.tallylock.ffi.leaseEnsure
import dev.tallylock.ffi.leaseFence
import dev.tallylock.ffi.leaseIsValid
import dev.tallylock.ffi.leaseRemainingUs
import dev.tallylock.ffi.submitLeaseExtend
import dev.tallylock.ffi.submitLeaseRelease
import dev.tallylock.internal.LeaseHandle
import dev.tallylock.internal.toMicros
import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds

/**
 * The time-limited right that [Lock.acquire] gave. A lease that is forgotten releases nothing: it lasts until its TTL
 * ends.
 *
 * What does not suspend asks no server.
 */
public class Lease internal constructor(private val handle: LeaseHandle) {
    /** The fencing token: larger than that of each earlier lease of this lock. */
    public val fence: Long
        get() = handle.id.call(::leaseFence).toLong()

    /** How long the lease is still ours by our clock; zero if it is not. */
    public val remaining: Duration
        get() = handle.id.call(::leaseRemainingUs).microseconds

    /** Whether the lease is ours by our clock. */
    public val isValid: Boolean
        get() = handle.id.call(::leaseIsValid)

    /**
     * Makes sure, at the moment of use, that the lease is still ours by our clock.
     *
     * @param margin for how long it must be ours at least, 0 to 10 years
     * @throws LostException if it is not, or not for that long
     * @throws InvalidArgumentException if [margin] is out of bounds
     */
    public fun ensure(margin: Duration): Unit = handle.id.call { lease -> leaseEnsure(lease, margin.toMicros()) }

    /**
     * Gives the lease another [ttl] from now. Repeated by itself after a lost reply.
     *
     * @param ttl 3 ms to 10 years, rounded up to milliseconds; the lock's own TTL if `null`
     * @throws LostException if the lease is no longer ours
     * @throws InvalidArgumentException if [ttl] is out of bounds; nothing is sent
     * @throws TallylockException as every call: `timeout`, `unavailable`, `outcome_unknown`, `read_only`,
     *   `forbidden`, `unsupported`, `closed`
     */
    public suspend fun extend(ttl: Duration? = null) {
        val ttlMicros = ttl?.toMicros() ?: handle.ttlMicros
        handle.session
            .await { client, ticket -> handle.id.call { lease -> submitLeaseExtend(client, ticket, lease, ttlMicros) } }
            .toUnit()
    }

    /**
     * Gives the lock back. Repeated by itself after a lost reply; may be called again after an exception, and does
     * nothing once it has succeeded.
     *
     * @throws LostException if the lease was no longer ours; another's lock is not touched
     * @throws TallylockException as every call: `timeout`, `unavailable`, `outcome_unknown`, `read_only`,
     *   `forbidden`, `unsupported`, `closed`
     */
    public suspend fun release(): Unit =
        handle.session
            .await { client, ticket -> handle.id.call { lease -> submitLeaseRelease(client, ticket, lease) } }
            .toUnit()
}
