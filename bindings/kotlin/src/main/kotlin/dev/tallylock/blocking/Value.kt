package dev.tallylock.blocking

import dev.tallylock.ffi.updateBegin
import dev.tallylock.ffi.updateFree
import dev.tallylock.ffi.updateOffer
import dev.tallylock.ffi.updatePresent
import dev.tallylock.ffi.valueCompareAndSet
import dev.tallylock.ffi.valueGet
import dev.tallylock.ffi.valueReplaceIfPresent
import dev.tallylock.ffi.valueTouch
import dev.tallylock.internal.Offered
import dev.tallylock.internal.ValueHandle
import dev.tallylock.internal.lending
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toOffered
import dev.tallylock.internal.toUtf8
import dev.tallylock.internal.translated
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
    public fun get(): ByteArray? = handle.session.call { client -> lending { valueGet(client, lend(handle.key)) } }

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
            lending { valueReplaceIfPresent(client, lend(handle.key), lend(value), ttl.toMicros()) }
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
        handle.session.call { client -> lending { valueTouch(client, lend(handle.key), ttl.toMicros()) } }

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
            lending { valueCompareAndSet(client, lend(handle.key), lend(expected), lend(value), ttl.toMicros()) }
        }

    /** The same with the UTF-8 of texts. */
    public fun compareAndSet(
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
     * @throws dev.tallylock.ConflictException if others were faster until the deadline; nothing is written
     * @throws dev.tallylock.InvalidArgumentException if the TTL is out of bounds; nothing is written
     */
    @Throws(Exception::class)
    public fun update(
        ttl: Duration,
        change: Change,
    ): ByteArray? {
        val update = handle.session.call { client -> lending { updateBegin(client, lend(handle.key)) } }
        if (update == NO_VALUE) return null
        try {
            while (true) {
                val value = change.apply(translated { updatePresent(update) })
                val offered =
                    handle.session.call { client ->
                        lending { updateOffer(client, lend(handle.key), update, lend(value), ttl.toMicros()) }
                    }
                when (offered.toLong().toOffered()) {
                    Offered.Written -> return value
                    Offered.Gone -> return null
                    Offered.Overtaken -> {}
                }
            }
        } finally {
            updateFree(update)
        }
    }

    private companion object {
        private val NO_VALUE = 0UL
    }
}

/** What [Value.update] makes of a value. */
public fun interface Change {
    /**
     * Changes a value.
     *
     * @param present the bytes that are there
     * @return the bytes to be written in their place
     * @throws Exception whatever it likes; then nothing is written
     */
    @Throws(Exception::class)
    public fun apply(present: ByteArray): ByteArray
}
