package dev.tallylock.internal

import java.math.BigInteger
import java.nio.ByteBuffer
import java.nio.ByteOrder

/** Reads what the native library has packed, one after the other: little-endian, bytes behind their length. */
internal class Packed(packed: ByteArray) {
    private val rest = ByteBuffer.wrap(packed).order(ByteOrder.LITTLE_ENDIAN)

    fun hasMore(): Boolean = rest.hasRemaining()

    fun byte(): Int = rest.get().toInt()

    fun long(): Long = rest.getLong()

    /** A number of 128 bits. */
    fun bigInteger(): BigInteger = BigInteger(ByteArray(2 * Long.SIZE_BYTES).also { rest.get(it) }.apply { reverse() })

    fun bytes(): ByteArray = ByteArray(rest.getInt()).also { rest.get(it) }

    fun text(): String = bytes().decodeToString()

    fun failure(): Failure =
        Failure(
            code = text(),
            reason = text().ifEmpty { null },
            key = text().ifEmpty { null },
            detail = text(),
            applied = text(),
        )

    /** Reads items until there are no more. */
    inline fun <T> all(item: Packed.() -> T): List<T> = buildList { while (hasMore()) add(item()) }
}
