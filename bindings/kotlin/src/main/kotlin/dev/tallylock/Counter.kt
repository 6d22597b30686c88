package dev.tallylock

import dev.tallylock.ffi.submitCounterDrain
import dev.tallylock.ffi.submitCounterFinish
import dev.tallylock.ffi.submitCounterRead
import dev.tallylock.internal.CounterHandle
import dev.tallylock.internal.DirectCalls

/**
 * A counter with a TTL. Made by [Client.counter]; may be shared by coroutines.
 *
 * Each verb may also throw the exceptions that every call has: [CallTimeoutException], [UnavailableException],
 * [ForbiddenException], [UnsupportedException], [ClosedException]; and those that change something
 * [OutcomeUnknownException], [ReadOnlyException] and [OutOfMemoryException].
 */
public class Counter internal constructor(private val handle: CounterHandle) {
    /**
     * Adds to the counter, and sets its TTL as the handle's expiry says. Never repeated by itself.
     *
     * @param amount any number; 0 and negative ones too
     * @return the total
     * @throws CounterOverflowException if the total does not fit into 64 bits; nothing is changed
     * @throws NotAnIntegerException if the key holds something else
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun add(amount: Long): Long =
        handle.session
            .await { client, ticket ->
                DirectCalls.submitCounterAdd(
                    client,
                    ticket,
                    handle.borrowedKey,
                    handle.ttlMicros,
                    handle.isFixed,
                    amount,
                )
            }.toLong()

    /**
     * Reads the counter.
     *
     * @return the total; `null` if there is no counter
     * @throws NotAnIntegerException if the key holds something else
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun read(): Long? =
        handle.session
            .await { client, ticket -> submitCounterRead(client, ticket, handle.key, handle.ttlMicros) }
            .toLongOrNull()

    /**
     * Takes what the counter holds and leaves 0 with the TTL that it has. Never repeated by itself.
     *
     * @return what was taken; `null` if there is no counter
     * @throws NotAnIntegerException if the key holds something else
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun drain(): Long? =
        handle.session
            .await { client, ticket -> submitCounterDrain(client, ticket, handle.key, handle.ttlMicros) }
            .toLongOrNull()

    /**
     * Deletes the counter. Never repeated by itself.
     *
     * @return what it held; `null` if there is no counter
     * @throws NotAnIntegerException if the key holds something else
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun finish(): Long? =
        handle.session
            .await { client, ticket -> submitCounterFinish(client, ticket, handle.key, handle.ttlMicros) }
            .toLongOrNull()
}
