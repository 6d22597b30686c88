package dev.tallylock

import dev.tallylock.ffi.submitValueCompareAndSet
import dev.tallylock.ffi.submitValueGet
import dev.tallylock.ffi.submitValueReplaceIfPresent
import dev.tallylock.ffi.submitValueTouch
import dev.tallylock.internal.ValueHandle
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toNative
import dev.tallylock.internal.toUtf8
import kotlin.time.Duration

/**
 * A value that is changed only where it already is: value and TTL in one step, and no verb ever creates the key. Made
 * by [Client.value]; may be shared by coroutines.
 *
 * Each verb may also throw the exceptions that every call has: [CallTimeoutException], [UnavailableException],
 * [ForbiddenException], [UnsupportedException], [ClosedException]; and those that change something
 * [OutcomeUnknownException], [ReadOnlyException] and [OutOfMemoryException].
 */
public class Value internal constructor(private val handle: ValueHandle) {
    /**
     * Reads the value.
     *
     * @return its bytes; `null` if there is none
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun get(): ByteArray? =
        handle.session
            .await { client, ticket -> submitValueGet(client, ticket, handle.key) }
            .toBytesOrNull()

    /**
     * Replaces the value and its TTL, if there is one. Never repeated by itself.
     *
     * @param value the new bytes
     * @param ttl what it has to live from now, 1 ms to 10 years, rounded up to milliseconds
     * @return whether there was one
     * @throws InvalidArgumentException if the TTL is out of bounds; nothing is sent
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun replaceIfPresent(
        value: ByteArray,
        ttl: Duration,
    ): Boolean {
        val native = value.toNative()
        return handle.session
            .await { client, ticket ->
                submitValueReplaceIfPresent(client, ticket, handle.key, native, ttl.toMicros())
            }.toBoolean()
    }

    /** The same with the UTF-8 of a text. */
    public suspend fun replaceIfPresent(
        value: String,
        ttl: Duration,
    ): Boolean = replaceIfPresent(value.toUtf8(handle.key), ttl)

    /**
     * Sets the TTL of the value, if there is one.
     *
     * @param ttl what it has to live from now, 1 ms to 10 years, rounded up to milliseconds
     * @return whether there was one
     * @throws InvalidArgumentException if the TTL is out of bounds; nothing is sent
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun touch(ttl: Duration): Boolean =
        handle.session
            .await { client, ticket -> submitValueTouch(client, ticket, handle.key, ttl.toMicros()) }
            .toBoolean()

    /**
     * Replaces the value and its TTL, if it is [expected]. Never repeated by itself.
     *
     * @param expected the bytes that must be there
     * @param value the new bytes
     * @param ttl what it has to live from now, 1 ms to 10 years, rounded up to milliseconds
     * @return whether they were there
     * @throws InvalidArgumentException if the TTL is out of bounds; nothing is sent
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun compareAndSet(
        expected: ByteArray,
        value: ByteArray,
        ttl: Duration,
    ): Boolean {
        val nativeExpected = expected.toNative()
        val nativeValue = value.toNative()
        return handle.session
            .await { client, ticket ->
                submitValueCompareAndSet(client, ticket, handle.key, nativeExpected, nativeValue, ttl.toMicros())
            }.toBoolean()
    }

    /** The same with the UTF-8 of texts. */
    public suspend fun compareAndSet(
        expected: String,
        value: String,
        ttl: Duration,
    ): Boolean = compareAndSet(expected.toUtf8(handle.key), value.toUtf8(handle.key), ttl)
}
