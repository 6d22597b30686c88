package dev.tallylock.blocking

import dev.tallylock.ffi.guardedDelete
import dev.tallylock.ffi.guardedSet
import dev.tallylock.internal.ValueHandle
import dev.tallylock.internal.lending
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toUtf8
import java.time.Duration

/**
 * [dev.tallylock.Guarded] with blocking verbs, which throw the same exceptions. Made by [Client.guarded]; may be shared by
 * threads.
 */
public class Guarded internal constructor(private val handle: ValueHandle) {
    /**
     * Writes the value and its TTL, whether there is one or not.
     *
     * @param value the new bytes
     * @param fence the [fence][Lease.fence] of the lease under which this is done, an unsigned number
     * @param ttl what it has to live from now, 1 ms to 10 years, rounded up to milliseconds
     * @throws dev.tallylock.FencedOffException if a higher fence was here within the last 7 days; nothing is changed
     * @throws dev.tallylock.InvalidArgumentException if the TTL is out of bounds; nothing is sent
     * @throws dev.tallylock.WrongTypeException if the key holds something that is not a string
     */
    public fun set(
        value: ByteArray,
        fence: Long,
        ttl: Duration,
    ): Unit =
        handle.session.call { client ->
            lending { guardedSet(client, lend(handle.key), lend(value), fence.toULong(), ttl.toMicros()) }
        }

    /** The same with the UTF-8 of a text. */
    public fun set(
        value: String,
        fence: Long,
        ttl: Duration,
    ): Unit = set(value.toUtf8(handle.key), fence, ttl)

    /**
     * Deletes the value; its guard stays.
     *
     * @param fence the [fence][Lease.fence] of the lease under which this is done, an unsigned number
     * @return whether there was one
     * @throws dev.tallylock.FencedOffException if a higher fence was here within the last 7 days; nothing is changed
     * @throws dev.tallylock.WrongTypeException if the key holds something that is not a string
     */
    public fun delete(fence: Long): Boolean =
        handle.session.call { client -> lending { guardedDelete(client, lend(handle.key), fence.toULong()) } }
}
