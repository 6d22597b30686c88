package dev.tallylock.internal

import dev.tallylock.Expiry
import dev.tallylock.ffi.checkCounter
import dev.tallylock.ffi.checkLock
import dev.tallylock.ffi.checkValue
import java.nio.ByteBuffer

// What the suspending and the blocking face of a handle have in common: its checked arguments in native form.

/** A counter's key and settings. */
internal class CounterHandle(
    val session: Session,
    key: ByteArray,
    val ttlMicros: Long,
    expiry: Expiry,
) {
    val key: ByteBuffer = key.toNative()
    val borrowedKey: BorrowedBytes = BorrowedBytes(this.key)
    val isFixed: Boolean = expiry == Expiry.Fixed

    /** What each entry of this counter in a batch begins with. */
    val packed: ByteArray by lazy(LazyThreadSafetyMode.PUBLICATION) { packCounter(this.key, ttlMicros, isFixed) }

    init {
        translated { checkCounter(this.key, ttlMicros) }
    }
}

/** What is looked for among the counters, and where the look begins. */
internal class ScanHandle(
    val session: Session,
    pattern: ByteArray,
    val cursor: String?,
    val withinMicros: Long,
) {
    val pattern: ByteBuffer = pattern.toNative()
}

/** A value's key. */
internal class ValueHandle(
    val session: Session,
    key: ByteArray,
) {
    val key: ByteBuffer = key.toNative()

    init {
        translated { checkValue(this.key) }
    }
}

/** A lock's key and settings. */
internal class LockHandle(
    val session: Session,
    key: ByteArray,
    val ttlMicros: Long,
) {
    val key: ByteBuffer = key.toNative()

    init {
        translated { checkLock(this.key, ttlMicros) }
    }

    /** The handle of a lease that this lock has granted. */
    fun granted(lease: ULong): LeaseHandle = LeaseHandle(session, LeaseId(lease), ttlMicros)
}

/** A lease, and what its lock gives it to live. */
internal class LeaseHandle(
    val session: Session,
    val id: LeaseId,
    val ttlMicros: Long,
)
