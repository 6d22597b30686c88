package dev.tallylock

import dev.tallylock.ffi.submitGuardedDelete
import dev.tallylock.ffi.submitGuardedSet
import dev.tallylock.internal.ValueHandle
import dev.tallylock.internal.lending
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toUtf8
import kotlin.time.Duration

/**
 * A text of any bytes that only the holder of a lock writes, in the name of its [fence][Lease.fence]: once a holder with a
 * higher fence was here, an earlier one is refused. The guard is that of fenced drains and claims at the same key. It is kept
 * for 7 days after its last use, also when the text is deleted or ends; once it is forgotten, a holder from before passes.
 * [Client.value] reads the text. Made by [Client.guarded]; may be shared by coroutines.
 *
 * No verb is repeated by itself after a lost reply, which ends as [OutcomeUnknownException]: the fence keeps other holders out,
 * but not what the same holder wrote in between. A holder who writes one after the other may repeat it.
 *
 * Each verb may also throw the exceptions that every call has: [CallTimeoutException], [UnavailableException],
 * [ForbiddenException], [UnsupportedException], [ClosedException], [ReadOnlyException] and [OutOfMemoryException].
 */
public class Guarded internal constructor(private val handle: ValueHandle) {
    /**
     * Writes the value and its TTL, whether there is one or not.
     *
     * @param value the new bytes
     * @param fence the [fence][Lease.fence] of the lease under which this is done, an unsigned number
     * @param ttl what it has to live from now, 1 ms to 10 years, rounded up to milliseconds
     * @throws FencedOffException if a higher fence was here within the last 7 days; nothing is changed
     * @throws InvalidArgumentException if the TTL is out of bounds; nothing is sent
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun set(
        value: ByteArray,
        fence: Long,
        ttl: Duration,
    ) {
        handle.session
            .await { client, ticket ->
                lending {
                    submitGuardedSet(
                        client,
                        ticket,
                        lend(handle.key),
                        lend(value),
                        fence.toULong(),
                        ttl.toMicros(),
                    )
                }
            }.toUnit()
    }

    /** The same with the UTF-8 of a text. */
    public suspend fun set(
        value: String,
        fence: Long,
        ttl: Duration,
    ): Unit = set(value.toUtf8(handle.key), fence, ttl)

    /**
     * Deletes the value; its guard stays.
     *
     * @param fence the [fence][Lease.fence] of the lease under which this is done, an unsigned number
     * @return whether there was one
     * @throws FencedOffException if a higher fence was here within the last 7 days; nothing is changed
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun delete(fence: Long): Boolean =
        handle.session
            .await {
                client,
                ticket,
                ->
                lending { submitGuardedDelete(client, ticket, lend(handle.key), fence.toULong()) }
            }.toBoolean()
}
