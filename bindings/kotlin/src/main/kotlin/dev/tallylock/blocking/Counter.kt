package dev.tallylock.blocking

import dev.tallylock.Added
import dev.tallylock.Claim
import dev.tallylock.Entry
import dev.tallylock.ffi.counterAbort
import dev.tallylock.ffi.counterAddOnce
import dev.tallylock.ffi.counterClaim
import dev.tallylock.ffi.counterClaims
import dev.tallylock.ffi.counterCommit
import dev.tallylock.ffi.counterDrain
import dev.tallylock.ffi.counterDrainFenced
import dev.tallylock.ffi.counterFinish
import dev.tallylock.ffi.counterRead
import dev.tallylock.internal.CounterHandle
import dev.tallylock.internal.DirectCalls
import dev.tallylock.internal.entry
import dev.tallylock.internal.lending
import dev.tallylock.internal.toAdded
import dev.tallylock.internal.toClaim
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toOpenClaims
import dev.tallylock.internal.toRememberMicros
import dev.tallylock.internal.toUtf8
import java.time.Duration
import kotlin.time.toKotlinDuration

/**
 * [dev.tallylock.Counter] with blocking verbs, which throw the same exceptions. Made by [Client.counter]; may be shared
 * by threads.
 */
public class Counter internal constructor(private val handle: CounterHandle) {
    /**
     * Adds to the counter, and sets its TTL as the handle's expiry says. Never repeated by itself.
     *
     * @param amount any number; 0 and negative ones too
     * @return the total
     * @throws dev.tallylock.CounterOverflowException if the total does not fit into 64 bits; nothing is changed
     */
    public fun add(amount: Long): Long =
        handle.session.call { client ->
            DirectCalls.counterAdd(client, handle.borrowedKey, handle.ttlMicros, handle.isFixed, amount)
        }

    /**
     * Adds to the counter unless it was added under this idempotency key before. Repeated by itself after a lost reply,
     * and may be repeated by the caller as long as the key is remembered.
     *
     * @param amount any number; 0 and negative ones too
     * @param idempotencyKey 1 to 512 bytes of UTF-8, unique among the adds to this counter
     * @param remember how long the key is remembered, 1 ms to 10 years, rounded up to milliseconds; 24 hours if `null`
     * @return the present total, and whether this call has added
     * @throws dev.tallylock.ConflictException if another amount was added under this key; nothing is changed
     * @throws dev.tallylock.InvalidArgumentException if the key or [remember] is out of bounds; nothing is sent
     * @throws dev.tallylock.CounterOverflowException if the total does not fit into 64 bits; nothing is changed
     */
    @JvmOverloads
    public fun add(
        amount: Long,
        idempotencyKey: String,
        remember: Duration? = null,
    ): Added = add(amount, idempotencyKey.toUtf8(handle.key), remember)

    /** The same with a key of any bytes. */
    @JvmOverloads
    public fun add(
        amount: Long,
        idempotencyKey: ByteArray,
        remember: Duration? = null,
    ): Added {
        val rememberMicros = remember?.toKotlinDuration().toRememberMicros()
        return handle.session
            .call { client ->
                lending {
                    counterAddOnce(
                        client,
                        lend(handle.key),
                        handle.ttlMicros,
                        handle.isFixed,
                        amount,
                        lend(idempotencyKey),
                        rememberMicros,
                    )
                }
            }.toAdded()
    }

    /**
     * An add for [Client.addMany]. Asks no server.
     *
     * @param amount any number; 0 and negative ones too
     * @return an entry
     */
    public fun entry(amount: Long): Entry = handle.entry(amount)

    /**
     * An add with an idempotency key for [Client.addMany]. Asks no server.
     *
     * @param amount any number; 0 and negative ones too
     * @param idempotencyKey 1 to 512 bytes of UTF-8, unique among the adds to this counter
     * @param remember how long the key is remembered, 1 ms to 10 years, rounded up to milliseconds; 24 hours if `null`
     * @return an entry; if the key is empty or too long or [remember] out of bounds, [Client.addMany] refuses it
     */
    @JvmOverloads
    public fun entry(
        amount: Long,
        idempotencyKey: String,
        remember: Duration? = null,
    ): Entry = handle.entry(amount, idempotencyKey.toUtf8(handle.key), remember?.toMicros())

    /** The same with a key of any bytes. */
    @JvmOverloads
    public fun entry(
        amount: Long,
        idempotencyKey: ByteArray,
        remember: Duration? = null,
    ): Entry = handle.entry(amount, idempotencyKey.copyOf(), remember?.toMicros())

    /**
     * Reads the counter.
     *
     * @return the total; `null` if there is no counter
     */
    public fun read(): Long? =
        handle.session.call { client ->
            lending { counterRead(client, lend(handle.key), handle.ttlMicros) }
        }

    /**
     * Takes what the counter holds and leaves 0 with the TTL that it has. Never repeated by itself.
     *
     * @param fence the [fence][Lease.fence] of the lease under which this is done, an unsigned number; `null` for none
     * @return what was taken; `null` if there is no counter
     * @throws dev.tallylock.FencedOffException if a drain or claim with a higher fence was here within the last 7 days
     */
    @JvmOverloads
    public fun drain(fence: Long? = null): Long? =
        handle.session.call { client ->
            if (fence == null) {
                lending { counterDrain(client, lend(handle.key), handle.ttlMicros) }
            } else {
                lending { counterDrainFenced(client, lend(handle.key), handle.ttlMicros, fence.toULong()) }
            }
        }

    /**
     * Deletes the counter. Never repeated by itself.
     *
     * @return what it held; `null` if there is no counter
     */
    public fun finish(): Long? =
        handle.session.call { client ->
            lending { counterFinish(client, lend(handle.key), handle.ttlMicros) }
        }

    /**
     * Takes what the counter holds for the claim of this id, to be [committed][commit] once it is billed, and leaves 0
     * with the TTL that it has. Asked again with the same id it gives the same amount, and what has become of the claim.
     * Repeated by itself after a lost reply.
     *
     * An open claim is kept for 7 days, an ended one for 24 hours.
     *
     * @param id 1 to 512 bytes of UTF-8, unique among the claims of this counter
     * @param fence the [fence][Lease.fence] of the lease under which this is done, an unsigned number; `null` for none
     * @return the claim; `null`, with nothing written, if there is nothing to take
     * @throws dev.tallylock.FencedOffException if a drain or claim with a higher fence was here within the last 7 days
     * @throws dev.tallylock.InvalidArgumentException if the id is out of bounds; nothing is sent
     */
    @JvmOverloads
    public fun claim(
        id: String,
        fence: Long? = null,
    ): Claim? = claim(id.toUtf8(handle.key), fence)

    /** The same with an id of any bytes. */
    @JvmOverloads
    public fun claim(
        id: ByteArray,
        fence: Long? = null,
    ): Claim? =
        handle.session
            .call { client ->
                lending { counterClaim(client, lend(handle.key), handle.ttlMicros, lend(id), fence?.toULong()) }
            }.toClaim()

    /**
     * Ends a claim as billed; done again, it changes nothing. Repeated by itself after a lost reply.
     *
     * @param id the claim's id
     * @param amount what the claim gave, and was billed
     * @throws dev.tallylock.ConflictException if the claim took another amount, was aborted, or is not there
     * @throws dev.tallylock.InvalidArgumentException if the id is out of bounds; nothing is sent
     */
    public fun commit(
        id: String,
        amount: Long,
    ): Unit = commit(id.toUtf8(handle.key), amount)

    /** The same with an id of any bytes. */
    public fun commit(
        id: ByteArray,
        amount: Long,
    ): Unit =
        handle.session.call { client ->
            lending { counterCommit(client, lend(handle.key), handle.ttlMicros, lend(id), amount) }
        }

    /**
     * Ends a claim as not billed, and adds its amount to the counter again; done again, it changes nothing. A counter that
     * is gone is made anew. Repeated by itself after a lost reply.
     *
     * @param id the claim's id
     * @param fence the [fence][Lease.fence] of the lease under which this is done, an unsigned number; `null` for none
     * @return the amount that was given back
     * @throws dev.tallylock.ConflictException if the claim was committed, or is not there
     * @throws dev.tallylock.CounterOverflowException if the counter cannot take the amount; the claim stays open
     * @throws dev.tallylock.FencedOffException if a drain or claim with a higher fence was here within the last 7 days,
     *   which may have billed the claim; it stays open
     * @throws dev.tallylock.InvalidArgumentException if the id is out of bounds; nothing is sent
     */
    @JvmOverloads
    public fun abort(
        id: String,
        fence: Long? = null,
    ): Long = abort(id.toUtf8(handle.key), fence)

    /** The same with an id of any bytes. */
    @JvmOverloads
    public fun abort(
        id: ByteArray,
        fence: Long? = null,
    ): Long =
        handle.session.call { client ->
            lending { counterAbort(client, lend(handle.key), handle.ttlMicros, lend(id), fence?.toULong()) }
        }

    /**
     * Lists the open claims of this counter. Goes through all keys of the server: for billing jobs that start and for
     * people, not for each call.
     *
     * @return the claims, in the order of their ids
     */
    public fun claims(): List<OpenClaim> =
        handle.session
            .call { client -> lending { counterClaims(client, lend(handle.key), handle.ttlMicros) } }
            .toOpenClaims()
            .map(::OpenClaim)
}
