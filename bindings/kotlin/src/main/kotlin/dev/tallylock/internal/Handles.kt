package dev.tallylock.internal

import dev.tallylock.ClosedException
import dev.tallylock.Expiry
import dev.tallylock.LeaseState
import dev.tallylock.LostException
import dev.tallylock.Renewal
import dev.tallylock.ffi.checkCounter
import dev.tallylock.ffi.checkLock
import dev.tallylock.ffi.checkValue
import dev.tallylock.ffi.leaseWait
import dev.tallylock.ffi.lockCheckFree
import dev.tallylock.ffi.submitLeaseLost
import java.lang.ref.WeakReference
import java.util.concurrent.atomic.AtomicBoolean

// What the suspending and the blocking face of a handle have in common: its checked arguments in native form.

/** A counter's key and settings. */
internal class CounterHandle(
    val session: Session,
    key: ByteArray,
    val ttlMicros: Long,
    expiry: Expiry,
) {
    val key: NativeBytes = NativeBytes(key)
    val borrowedKey: BorrowedBytes = this.key.borrowed()
    val isFixed: Boolean = expiry == Expiry.Fixed

    /** What each entry of this counter in a batch begins with. */
    val packed: ByteArray by lazy(LazyThreadSafetyMode.PUBLICATION) { packCounter(this.key, ttlMicros, isFixed) }

    init {
        translated { lending { checkCounter(lend(this@CounterHandle.key), ttlMicros) } }
    }
}

/** What is looked for among the counters, and where the look begins. */
internal class ScanHandle(
    val session: Session,
    pattern: ByteArray,
    val cursor: String?,
    val withinMicros: Long,
) {
    val pattern: NativeBytes = NativeBytes(pattern)
}

/** A value's key. */
internal class ValueHandle(
    val session: Session,
    key: ByteArray,
) {
    val key: NativeBytes = NativeBytes(key)

    init {
        translated { lending { checkValue(lend(this@ValueHandle.key)) } }
    }
}

/** A lock's key and settings, and the lease that it has granted last. */
internal class LockHandle(
    val session: Session,
    key: ByteArray,
    val ttlMicros: Long,
    renewal: Renewal,
    maxHoldMicros: Long?,
) {
    val key: NativeBytes = NativeBytes(key)
    val intervalMicros: Long = renewal.toMicros(this.key)
    val maxHoldMicros: Long = maxHoldMicros.orUnbounded(this.key)

    @Volatile
    private var last: WeakReference<LeaseHandle>? = null

    init {
        translated {
            lending { checkLock(lend(this@LockHandle.key), ttlMicros, intervalMicros, this@LockHandle.maxHoldMicros) }
        }
    }

    /** Makes sure that it is not held by this handle: to wait for it would be to wait for itself. */
    fun checkFree() {
        last?.get()?.checkNotHeld()
    }

    /** The handle of a lease that this lock has granted. */
    fun granted(lease: ULong): LeaseHandle = LeaseHandle(session, lease, ttlMicros).also { last = WeakReference(it) }
}

/** A lease, what its lock gives it to live, and how it has ended. */
internal class LeaseHandle(
    val session: Session,
    lease: ULong,
    val ttlMicros: Long,
) {
    val id: LeaseId = LeaseId(lease)
    private val end = LeaseEnd(lease)
    private val isWatched = AtomicBoolean()

    @Volatile
    private var isLetGo = false

    /** Remembers that the holder has let go of it. */
    fun letGo() {
        isLetGo = true
    }

    fun checkNotHeld() {
        if (!isLetGo) id.call(::lockCheckFree)
    }

    /** What has become of it by now. */
    fun state(): LeaseState {
        val known = end.known.value
        if (known is LeaseState.Lost) return known
        val state =
            try {
                if (id.call { lease -> leaseWait(lease, 0uL) }) LeaseState.Held else LeaseState.LetGo
            } catch (lost: LostException) {
                LeaseState.Lost(lost)
            }
        if (state != LeaseState.Held) end.tell(state)
        return state
    }

    /** Its end, which is waited for from now on; that it was before is known at once. */
    fun watched(): LeaseEnd {
        if (isWatched.compareAndSet(false, true)) watch()
        state()
        return end
    }

    private fun watch() {
        try {
            session.submit({ client, ticket -> id.call { lease -> submitLeaseLost(client, ticket, lease) } }, end::told)
        } catch (_: ClosedException) {
            end.watchOnAThread()
        }
    }
}
