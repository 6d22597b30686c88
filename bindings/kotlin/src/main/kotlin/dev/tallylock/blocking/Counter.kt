package dev.tallylock.blocking

import dev.tallylock.ffi.counterDrain
import dev.tallylock.ffi.counterFinish
import dev.tallylock.ffi.counterRead
import dev.tallylock.internal.CounterHandle
import dev.tallylock.internal.DirectCalls

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
     * Reads the counter.
     *
     * @return the total; `null` if there is no counter
     */
    public fun read(): Long? = handle.session.call { client -> counterRead(client, handle.key, handle.ttlMicros) }

    /**
     * Takes what the counter holds and leaves 0 with the TTL that it has. Never repeated by itself.
     *
     * @return what was taken; `null` if there is no counter
     */
    public fun drain(): Long? = handle.session.call { client -> counterDrain(client, handle.key, handle.ttlMicros) }

    /**
     * Deletes the counter. Never repeated by itself.
     *
     * @return what it held; `null` if there is no counter
     */
    public fun finish(): Long? = handle.session.call { client -> counterFinish(client, handle.key, handle.ttlMicros) }
}
