package dev.tallylock.internal

import java.nio.ByteBuffer
import java.nio.ByteOrder

/** What a call in the background ended with. */
internal sealed interface Outcome {
    data object None : Outcome

    class Integer(val value: Long) : Outcome

    class Bytes(val value: ByteArray) : Outcome

    class Truth(val value: Boolean) : Outcome

    class Granted(val lease: ULong) : Outcome

    class Failed(val failure: Failure) : Outcome

    /** The native library did something that it never does. */
    class Broken(val cause: Throwable) : Outcome

    fun toLong(): Long = toLongOrNull() ?: unexpected()

    fun toLongOrNull(): Long? = if (succeeded() == None) null else (this as? Integer ?: unexpected()).value

    fun toBytesOrNull(): ByteArray? = if (succeeded() == None) null else (this as? Bytes ?: unexpected()).value

    fun toBoolean(): Boolean = (succeeded() as? Truth ?: unexpected()).value

    fun toLease(): ULong = (succeeded() as? Granted ?: unexpected()).lease

    fun toUnit() {
        if (succeeded() != None) unexpected()
    }

    private fun succeeded(): Outcome =
        when (this) {
            is Failed -> throw failure.toException()
            is Broken -> throw IllegalStateException("the native library failed: $cause", cause)
            else -> this
        }

    private fun unexpected(): Nothing = error("the native library answered with another kind of result: $this")
}

/**
 * Reads the records of a client's queue, as the native library's module `completion` lays them out: a ticket, a kind,
 * and what that kind has, little-endian.
 */
internal class Records(packed: ByteArray) {
    private val records = ByteBuffer.wrap(packed).order(ByteOrder.LITTLE_ENDIAN)

    /** Calls [each] with every ticket and what it ended with. */
    fun forEach(each: (ticket: Long, outcome: Outcome) -> Unit) {
        while (records.hasRemaining()) {
            each(records.getLong(), outcome())
        }
    }

    private fun outcome(): Outcome =
        when (val kind = records.get().toInt()) {
            NOTHING -> Outcome.None
            INTEGER -> Outcome.Integer(records.getLong())
            BYTES -> Outcome.Bytes(bytes())
            TRUTH -> Outcome.Truth(records.get() != 0.toByte())
            LEASE -> Outcome.Granted(records.getLong().toULong())
            ERROR -> Outcome.Failed(failure())
            else -> error("the native library sent a record of the unknown kind $kind")
        }

    private fun failure(): Failure =
        Failure(
            code = text(),
            reason = text().ifEmpty { null },
            key = text().ifEmpty { null },
            detail = text(),
            applied = text(),
        )

    private fun text(): String = bytes().decodeToString()

    private fun bytes(): ByteArray = ByteArray(records.getInt()).also { records.get(it) }

    private companion object {
        private const val NOTHING = 0
        private const val INTEGER = 1
        private const val BYTES = 2
        private const val TRUTH = 3
        private const val LEASE = 4
        private const val ERROR = 5
    }
}
