package dev.tallylock

import dev.tallylock.ffi.submitUpdateBegin
import dev.tallylock.ffi.submitUpdateOffer
import dev.tallylock.ffi.submitValueCompareAndSet
import dev.tallylock.ffi.submitValueGet
import dev.tallylock.ffi.submitValueReplaceIfPresent
import dev.tallylock.ffi.submitValueTouch
import dev.tallylock.ffi.updateFree
import dev.tallylock.ffi.updatePresent
import dev.tallylock.internal.Offered
import dev.tallylock.internal.Outcome
import dev.tallylock.internal.ValueHandle
import dev.tallylock.internal.lending
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toOffered
import dev.tallylock.internal.toUtf8
import dev.tallylock.internal.translated
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
            .await { client, ticket -> lending { submitValueGet(client, ticket, lend(handle.key)) } }
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
    ): Boolean =
        handle.session
            .await { client, ticket ->
                lending { submitValueReplaceIfPresent(client, ticket, lend(handle.key), lend(value), ttl.toMicros()) }
            }.toBoolean()

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
            .await { client, ticket -> lending { submitValueTouch(client, ticket, lend(handle.key), ttl.toMicros()) } }
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
    ): Boolean =
        handle.session
            .await { client, ticket ->
                lending {
                    submitValueCompareAndSet(
                        client,
                        ticket,
                        lend(handle.key),
                        lend(expected),
                        lend(value),
                        ttl.toMicros(),
                    )
                }
            }.toBoolean()

    /** The same with the UTF-8 of texts. */
    public suspend fun compareAndSet(
        expected: String,
        value: String,
        ttl: Duration,
    ): Boolean = compareAndSet(expected.toUtf8(handle.key), value.toUtf8(handle.key), ttl)

    /**
     * Replaces the value by what [change] makes of it, and its TTL with it, if there is one. What [change] throws is thrown,
     * and nothing is written then.
     *
     * @param ttl what it has to live from then on, 1 ms to 10 years, rounded up to milliseconds
     * @param change gives the new bytes for those that are there; called again with what is there then, if another has
     *   written meanwhile. Nothing is locked while it runs
     * @return what was written; `null` if there is no value
     * @throws ConflictException if others were faster until the deadline; nothing is written
     * @throws InvalidArgumentException if the TTL is out of bounds; nothing is written
     * @throws WrongTypeException if the key holds something that is not a string
     */
    public suspend fun update(
        ttl: Duration,
        change: suspend (present: ByteArray) -> ByteArray,
    ): ByteArray? {
        val update = begin() ?: return null
        try {
            while (true) {
                val value = change(translated { updatePresent(update) })
                when (offer(update, value, ttl)) {
                    Offered.Written -> return value
                    Offered.Gone -> return null
                    Offered.Overtaken -> {}
                }
            }
        } finally {
            updateFree(update)
        }
    }

    /** Reads the value to change it; the id of what was read must be freed. */
    private suspend fun begin(): ULong? =
        handle.session
            .awaitOrLeave(
                { client, ticket -> lending { submitUpdateBegin(client, ticket, lend(handle.key)) } },
                { unseen -> (unseen as? Outcome.Integer)?.let { updateFree(it.value.toULong()) } },
            ).toLong()
            .takeIf { it != 0L }
            ?.toULong()

    private suspend fun offer(
        update: ULong,
        value: ByteArray,
        ttl: Duration,
    ): Offered =
        handle.session
            .awaitOrLeave(
                {
                    client,
                    ticket,
                    ->
                    lending { submitUpdateOffer(client, ticket, lend(handle.key), update, lend(value), ttl.toMicros()) }
                },
                // An offer that was overtaken keeps the id, after its caller has freed it.
                { updateFree(update) },
            ).toLong()
            .toOffered()
}
