package dev.tallylock

import dev.tallylock.ffi.leaseEnsure
import dev.tallylock.ffi.leaseFence
import dev.tallylock.ffi.leaseIsValid
import dev.tallylock.ffi.leaseRemainingUs
import dev.tallylock.ffi.submitLeaseExtend
import dev.tallylock.ffi.submitLeaseRelease
import dev.tallylock.ffi.submitLeaseTransfer
import dev.tallylock.ffi.submitLeaseVerify
import dev.tallylock.internal.LeaseHandle
import dev.tallylock.internal.LeaseStates
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toText
import kotlinx.coroutines.flow.StateFlow
import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds

/**
 * The time-limited right that [Lock.acquire] gave. It is renewed in the background until it is released, unless the lock says
 * otherwise. A lease that is forgotten releases nothing: it is renewed until it is collected, and lasts until its TTL ends.
 *
 * What does not suspend asks no server.
 */
public class Lease internal constructor(internal val handle: LeaseHandle) {
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
     * What has become of the lease. The value is computed by our clock at each look; who collects is told of a loss no later
     * than at the lease's deadline, also when the server is silent.
     */
    public val state: StateFlow<LeaseState> = LeaseStates(handle)

    /**
     * Makes sure, at the moment of use, that the lease is still ours by our clock.
     *
     * @param margin for how long it must be ours at least, 0 to 10 years
     * @throws LostException if it is not, or not for that long
     * @throws InvalidArgumentException if [margin] is out of bounds
     */
    public fun ensure(margin: Duration): Unit = handle.id.call { lease -> leaseEnsure(lease, margin.toMicros()) }

    /**
     * Makes sure, by asking the server, that the lease is ours.
     *
     * @param margin for how long it must be ours at least, 0 to 10 years
     * @throws LostException if it is not, or not for that long
     * @throws InvalidArgumentException if [margin] is out of bounds; nothing is sent
     * @throws TallylockException as every call: `timeout`, `unavailable`, `forbidden`, `closed`
     */
    public suspend fun verify(margin: Duration): Unit =
        handle.session
            .await { client, ticket ->
                handle.id.call { lease -> submitLeaseVerify(client, ticket, lease, margin.toMicros()) }
            }.toUnit()

    /**
     * Gives the lease another [ttl] from now, which is what it is renewed to from then on. Repeated by itself after a lost reply.
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
     * Gives the lock back, after the renewal that may be under way. Repeated by itself after a lost reply; may be called again
     * after an exception, and does nothing once it has succeeded.
     *
     * @throws LostException if the lease was no longer ours; another's lock is not touched
     * @throws TallylockException as every call: `timeout`, `unavailable`, `outcome_unknown`, `read_only`,
     *   `forbidden`, `unsupported`, `closed`
     */
    public suspend fun release() {
        handle.session
            .await { client, ticket -> handle.id.call { lease -> submitLeaseRelease(client, ticket, lease) } }
            .toUnit()
        handle.letGo()
    }

    /**
     * Gives the lease away: whoever has the text that this returns can [adopt][Lock.adopt] it, for as long as it lasts. It is not
     * renewed any more, and a release does nothing.
     *
     * @return the right to the lease: it belongs into no log
     * @throws LostException if the lease is no longer ours
     * @throws ClosedException if the client is closed
     */
    public suspend fun transfer(): String {
        val token =
            handle.session
                .await { client, ticket -> handle.id.call { lease -> submitLeaseTransfer(client, ticket, lease) } }
                .toBytes()
        handle.letGo()
        return token.toText()
    }
}
