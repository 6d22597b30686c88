package dev.tallylock.blocking

import dev.tallylock.LeaseState
import dev.tallylock.ffi.leaseEnsure
import dev.tallylock.ffi.leaseExtend
import dev.tallylock.ffi.leaseFence
import dev.tallylock.ffi.leaseIsValid
import dev.tallylock.ffi.leaseRelease
import dev.tallylock.ffi.leaseRemainingUs
import dev.tallylock.ffi.leaseTransfer
import dev.tallylock.ffi.leaseVerify
import dev.tallylock.internal.LeaseHandle
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toText
import java.time.Duration
import java.util.concurrent.CompletionStage
import java.util.function.Function
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.toJavaDuration

/**
 * [dev.tallylock.Lease] with blocking verbs, which throw the same exceptions. A lease that is forgotten releases
 * nothing: it is renewed until it is collected, and lasts until its TTL ends.
 */
public class Lease internal constructor(private val handle: LeaseHandle) {
    /** The fencing token: larger than that of each earlier lease of this lock. */
    public val fence: Long
        get() = handle.id.call(::leaseFence).toLong()

    /** How long the lease is still ours by our clock; zero if it is not. Asks no server. */
    public val remaining: Duration
        get() =
            handle.id
                .call(::leaseRemainingUs)
                .microseconds
                .toJavaDuration()

    /** Whether the lease is ours by our clock. Asks no server. */
    public val isValid: Boolean
        get() = handle.id.call(::leaseIsValid)

    /** What has become of the lease, by our clock at this moment. Asks no server. */
    public val state: LeaseState
        get() = handle.state()

    /**
     * Completes when the lease is lost, no later than at its deadline, also when the server is silent, or when it is let go of;
     * what follows runs in the common pool. It does not keep the lease.
     */
    public val end: CompletionStage<LeaseState> by lazy {
        handle
            .watched()
            .first
            .thenApplyAsync(Function.identity())
            .minimalCompletionStage()
    }

    /**
     * Makes sure, at the moment of use, that the lease is still ours by our clock. Asks no server.
     *
     * @param margin for how long it must be ours at least, 0 to 10 years
     * @throws dev.tallylock.LostException if it is not, or not for that long
     * @throws dev.tallylock.InvalidArgumentException if [margin] is out of bounds
     */
    public fun ensure(margin: Duration): Unit = handle.id.call { lease -> leaseEnsure(lease, margin.toMicros()) }

    /**
     * Makes sure, by asking the server, that the lease is ours.
     *
     * @param margin for how long it must be ours at least, 0 to 10 years
     * @throws dev.tallylock.LostException if it is not, or not for that long
     * @throws dev.tallylock.InvalidArgumentException if [margin] is out of bounds; nothing is sent
     * @throws dev.tallylock.TallylockException as every call: `timeout`, `unavailable`, `forbidden`, `closed`
     */
    public fun verify(margin: Duration): Unit = handle.id.call { lease -> leaseVerify(lease, margin.toMicros()) }

    /**
     * Gives the lease another [ttl] from now, which is what it is renewed to from then on. Repeated by itself after a lost reply.
     *
     * @param ttl 3 ms to 10 years, rounded up to milliseconds; the lock's own TTL if `null`
     * @throws dev.tallylock.LostException if the lease is no longer ours
     * @throws dev.tallylock.InvalidArgumentException if [ttl] is out of bounds; nothing is sent
     * @throws dev.tallylock.TallylockException as every call: `timeout`, `unavailable`, `outcome_unknown`, `read_only`,
     *   `forbidden`, `unsupported`, `closed`
     */
    @JvmOverloads
    public fun extend(ttl: Duration? = null): Unit =
        handle.id.call { lease -> leaseExtend(lease, ttl?.toMicros() ?: handle.ttlMicros) }

    /**
     * Gives the lock back, after the renewal that may be under way. Repeated by itself after a lost reply; may be called again
     * after an exception, and does nothing once it has succeeded.
     *
     * @throws dev.tallylock.LostException if the lease was no longer ours; another's lock is not touched
     * @throws dev.tallylock.TallylockException as every call: `timeout`, `unavailable`, `outcome_unknown`, `read_only`,
     *   `forbidden`, `unsupported`, `closed`
     */
    public fun release() {
        handle.id.call(::leaseRelease)
        handle.letGo()
    }

    /**
     * Gives the lease away: whoever has the text that this returns can [adopt][Lock.adopt] it, for as long as it lasts. It is not
     * renewed any more, and a release does nothing.
     *
     * @return the right to the lease: it belongs into no log
     * @throws dev.tallylock.LostException if the lease is no longer ours
     * @throws dev.tallylock.ClosedException if the client is closed
     */
    public fun transfer(): String {
        val token = handle.id.call(::leaseTransfer)
        handle.letGo()
        return token.toText()
    }
}
