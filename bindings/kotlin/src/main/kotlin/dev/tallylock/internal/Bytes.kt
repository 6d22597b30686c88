package dev.tallylock.internal

import java.lang.ref.Reference
import java.nio.ByteBuffer

/**
 * Bytes at an address of their own, which native calls borrow within [lending].
 *
 * A key is laid there once, when its handle is made. Nobody moves the buffer's position, so threads may share it.
 */
internal class NativeBytes private constructor(private val buffer: ByteBuffer) {
    constructor(bytes: ByteArray) : this(bytes.size, { put(bytes) })

    /** So many bytes, which [write] puts there. */
    constructor(size: Int, write: ByteBuffer.() -> Unit) : this(ByteBuffer.allocateDirect(size).apply(write).flip())

    val size: Int get() = buffer.remaining()

    /** A key as exceptions name it. */
    fun toName(): String = Charsets.UTF_8.decode(buffer.duplicate()).toString()

    /** For calls that go around the glue, which keep what they borrow. */
    fun borrowed(): BorrowedBytes = BorrowedBytes(buffer)

    fun writeTo(target: ByteBuffer): ByteBuffer = target.put(buffer.duplicate())

    /** What a native call has borrowed. */
    class Loan {
        private val lent = ArrayList<ByteBuffer>(MOST)

        fun lend(bytes: NativeBytes): ByteBuffer = bytes.buffer.also(lent::add)

        fun lend(bytes: ByteArray): ByteBuffer = lend(NativeBytes(bytes))

        private companion object {
            const val MOST = 3
        }
    }
}

/**
 * Makes a native call that borrows bytes, and keeps them until it has returned.
 *
 * The call itself is given no more than their address: they are freed when nobody can reach them any more, even if that
 * is in the middle of the call.
 */
internal inline fun <T> lending(call: NativeBytes.Loan.() -> T): T {
    val loan = NativeBytes.Loan()
    try {
        return loan.call()
    } finally {
        Reference.reachabilityFence(loan)
    }
}

/**
 * The text's UTF-8 bytes. Half of a surrogate pair has none: it is refused, or two keys would become one.
 *
 * @param key what a refusal is about, if it is not this text
 */
internal fun String.toUtf8(key: NativeBytes? = null): ByteArray =
    try {
        encodeToByteArray(throwOnInvalidSequence = true)
    } catch (_: CharacterCodingException) {
        val name = key?.toName() ?: encodeToByteArray().decodeToString()
        throw invalidArgument(name, "a text has no half of a surrogate pair")
    }

/**
 * The text that these bytes are the UTF-8 of.
 *
 * @throws IllegalStateException if they are of none
 */
internal fun ByteArray.toText(): String =
    try {
        decodeToString(throwOnInvalidSequence = true)
    } catch (exception: CharacterCodingException) {
        throw IllegalStateException("the bytes are no UTF-8: take them as they are", exception)
    }
