package dev.tallylock.internal

/** What a call in the background ended with. */
internal sealed interface Outcome {
    data object None : Outcome

    class Integer(val value: Long) : Outcome

    class Bytes(val value: ByteArray) : Outcome

    class Truth(val value: Boolean) : Outcome

    class Granted(val lease: ULong) : Outcome

    class Adopted(val lease: ULong) : Outcome

    class Failed(val failure: Failure) : Outcome

    /** The native library did something that it never does. */
    class Broken(val cause: Throwable) : Outcome

    fun toLong(): Long = toLongOrNull() ?: unexpected()

    fun toLongOrNull(): Long? = if (succeeded() == None) null else (this as? Integer ?: unexpected()).value

    fun toBytes(): ByteArray = toBytesOrNull() ?: unexpected()

    fun toBytesOrNull(): ByteArray? = if (succeeded() == None) null else (this as? Bytes ?: unexpected()).value

    fun toBoolean(): Boolean = (succeeded() as? Truth ?: unexpected()).value

    fun toLease(): ULong = (succeeded() as? Granted ?: unexpected()).lease

    fun toAdoptedLease(): ULong = (succeeded() as? Adopted ?: unexpected()).lease

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
 * and what that kind has.
 */
internal class Records(packed: ByteArray) {
    private val records = Packed(packed)

    /** Calls [each] with every ticket and what it ended with. */
    fun forEach(each: (ticket: Long, outcome: Outcome) -> Unit) {
        while (records.hasMore()) {
            each(records.long(), outcome())
        }
    }

    private fun outcome(): Outcome =
        when (val kind = records.byte()) {
            NOTHING -> Outcome.None
            INTEGER -> Outcome.Integer(records.long())
            BYTES -> Outcome.Bytes(records.bytes())
            TRUTH -> Outcome.Truth(records.byte() != 0)
            LEASE -> Outcome.Granted(records.long().toULong())
            ADOPTED -> Outcome.Adopted(records.long().toULong())
            ERROR -> Outcome.Failed(records.failure())
            else -> error("the native library sent a record of the unknown kind $kind")
        }

    private companion object {
        private const val NOTHING = 0
        private const val INTEGER = 1
        private const val BYTES = 2
        private const val TRUTH = 3
        private const val LEASE = 4
        private const val ERROR = 5
        private const val ADOPTED = 6
    }
}
