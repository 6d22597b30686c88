package dev.tallylock.blocking

import dev.tallylock.ffi.valueCompareAndSet
import dev.tallylock.ffi.valueGet
import dev.tallylock.ffi.valueReplaceIfPresent
import dev.tallylock.ffi.valueTouch
import dev.tallylock.internal.ValueHandle
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toNative
import dev.tallylock.internal.toUtf8
import java.time.Duration

/**
 * [dev.tallylock.Value] with blocking verbs, which throw the same exceptions. Made by [Client.value]; may be shared by
 * threads.
 */
public class Value internal constructor(private val handle: ValueHandle) {
    /**
     * Reads the value.
     *
     * @return its bytes; `null` if there is none
     */
    public fun get(): ByteArray? = handle.session.call { client -> valueGet(client, handle.key) }

    /**
     * Replaces the value and its TTL, if there is one. Never repeated by itself.
     *
     * @param value the new bytes
     * @param ttl what it has to live from now, 1 ms to 10 years, rounded up to milliseconds
     * @return whether there was one
     * @throws dev.tallylock.InvalidArgumentException if the TTL is out of bounds; nothing is sent
     */
    public fun replaceIfPresent(
        value: ByteArray,
        ttl: Duration,
    ): Boolean =
        handle.session.call { client ->
            valueReplaceIfPresent(client, handle.key, value.toNative(), ttl.toMicros())
        }

    /** The same with the UTF-8 of a text. */
    public fun replaceIfPresent(
        value: String,
        ttl: Duration,
    ): Boolean = replaceIfPresent(value.toUtf8(handle.key), ttl)

    /**
     * Sets the TTL of the value, if there is one.
     *
     * @param ttl what it has to live from now, 1 ms to 10 years, rounded up to milliseconds
     * @return whether there was one
     * @throws dev.tallylock.InvalidArgumentException if the TTL is out of bounds; nothing is sent
     */
    public fun touch(ttl: Duration): Boolean =
        handle.session.call { client -> valueTouch(client, handle.key, ttl.toMicros()) }

    /**
     * Replaces the value and its TTL, if it is [expected]. Never repeated by itself.
     *
     * @param expected the bytes that must be there
     * @param value the new bytes
     * @param ttl what it has to live from now, 1 ms to 10 years, rounded up to milliseconds
     * @return whether they were there
     * @throws dev.tallylock.InvalidArgumentException if the TTL is out of bounds; nothing is sent
     */
    public fun compareAndSet(
        expected: ByteArray,
        value: ByteArray,
        ttl: Duration,
    ): Boolean =
        handle.session.call { client ->
            valueCompareAndSet(client, handle.key, expected.toNative(), value.toNative(), ttl.toMicros())
        }

    /** The same with the UTF-8 of texts. */
    public fun compareAndSet(
        expected: String,
        value: String,
        ttl: Duration,
    ): Boolean = compareAndSet(expected.toUtf8(handle.key), value.toUtf8(handle.key), ttl)
}
