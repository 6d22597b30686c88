package dev.tallylock.internal

import com.sun.jna.Memory
import com.sun.jna.Native
import com.sun.jna.Pointer
import com.sun.jna.Structure
import dev.tallylock.ffi.CallException
import dev.tallylock.ffi.FfiConverterString
import dev.tallylock.ffi.InternalException
import dev.tallylock.ffi.RustBuffer
import dev.tallylock.ffi.uniffiEnsureInitialized
import java.nio.ByteBuffer

/**
 * The hottest calls, made without the glue: it builds several native structures a call and has a thread free them, which
 * costs as much as a round trip. These keep one structure a key and one a thread.
 *
 * The functions are those that the glue calls, under its own names; [uniffiEnsureInitialized] has it verify first that
 * library and glue are of one build. Hence their names, which the library exports.
 */
@Suppress("ktlint:standard:function-naming")
internal object DirectCalls {
    private val statuses: ThreadLocal<CallStatus> = ThreadLocal.withInitial(::CallStatus)
    private val lent: ThreadLocal<LentBytes> = ThreadLocal.withInitial(::LentBytes)

    init {
        uniffiEnsureInitialized()
        Native.register(DirectCalls::class.java, "tallylock_ffi")
    }

    fun counterAdd(
        client: ULong,
        key: BorrowedBytes,
        ttlMicros: Long,
        isFixed: Boolean,
        amount: Long,
    ): Long =
        checked { status ->
            uniffi_tallylock_ffi_fn_func_counter_add(
                client.toLong(),
                key,
                ttlMicros,
                isFixed.toByte(),
                amount,
                status,
            )
        }

    fun submitCounterAdd(
        client: ULong,
        ticket: ULong,
        key: BorrowedBytes,
        ttlMicros: Long,
        isFixed: Boolean,
        amount: Long,
    ): Unit =
        checked { status ->
            uniffi_tallylock_ffi_fn_func_submit_counter_add(
                client.toLong(),
                ticket.toLong(),
                key,
                ttlMicros,
                isFixed.toByte(),
                amount,
                status,
            )
        }

    fun meterAdd(
        meter: ULong,
        key: ByteArray,
        amount: Long,
    ): Unit =
        checked { status ->
            uniffi_tallylock_ffi_fn_func_meter_add(meter.toLong(), lent.get().of(key), amount, status)
        }

    /** The ticket of an integer that has come, for [completionInteger]; 0 if something else is to be taken, or nothing. */
    fun completionsWaitInteger(
        client: ULong,
        millis: Long,
    ): Long {
        val id = client.toLong()
        return checked { status -> uniffi_tallylock_ffi_fn_func_completions_wait_integer(id, millis, status) }
    }

    fun completionInteger(
        client: ULong,
        ticket: Long,
    ): Long {
        val id = client.toLong()
        return checked { status -> uniffi_tallylock_ffi_fn_func_completion_integer(id, ticket, status) }
    }

    private inline fun <T> checked(call: (status: Pointer) -> T): T {
        val status = statuses.get()
        val result = call(status.memory)
        status.throwIfFailed()
        return result
    }

    private fun Boolean.toByte(): Byte = if (this) 1 else 0

    private external fun uniffi_tallylock_ffi_fn_func_counter_add(
        client: Long,
        key: BorrowedBytes,
        ttlUs: Long,
        fixed: Byte,
        amount: Long,
        status: Pointer,
    ): Long

    private external fun uniffi_tallylock_ffi_fn_func_submit_counter_add(
        client: Long,
        ticket: Long,
        key: BorrowedBytes,
        ttlUs: Long,
        fixed: Byte,
        amount: Long,
        status: Pointer,
    )

    private external fun uniffi_tallylock_ffi_fn_func_meter_add(
        meter: Long,
        key: BorrowedBytes,
        amount: Long,
        status: Pointer,
    )

    private external fun uniffi_tallylock_ffi_fn_func_completions_wait_integer(
        client: Long,
        millis: Long,
        status: Pointer,
    ): Long

    private external fun uniffi_tallylock_ffi_fn_func_completion_integer(
        client: Long,
        ticket: Long,
        status: Pointer,
    ): Long
}

/** Bytes that native calls borrow: a length and an address, which are written down and not looked at again. */
@Structure.FieldOrder("len", "data")
internal class BorrowedBytes(
    // Keeps the bytes alive.
    private val bytes: ByteBuffer,
) : Structure(),
    Structure.ByValue {
    /** For JNA, which looks at an empty one to learn the structure's form. */
    @Suppress("unused")
    constructor() : this(ByteBuffer.allocateDirect(0))

    @JvmField
    var len: Int = bytes.remaining()

    @JvmField
    var data: Pointer? = if (bytes.hasRemaining()) Native.getDirectBufferPointer(bytes) else null

    init {
        write()
        setAutoSynch(false)
    }

    /** Lets it stand for what is at this address. */
    fun pointTo(address: Pointer): Unit = pointer.setPointer(fieldOffset("data").toLong(), address)

    /** Lets it stand for so many bytes. */
    fun lengthen(length: Int): Unit = pointer.setInt(fieldOffset("len").toLong(), length)
}

/** Bytes that are others at each call of a thread, laid at one address as long as they fit there. */
private class LentBytes {
    private var memory = Memory(LEAST)
    private val borrowed = BorrowedBytes().apply { pointTo(memory) }

    fun of(bytes: ByteArray): BorrowedBytes {
        if (memory.size() < bytes.size) {
            memory = Memory(bytes.size.toLong())
            borrowed.pointTo(memory)
        }
        memory.write(0, bytes, 0, bytes.size)
        borrowed.lengthen(bytes.size)
        return borrowed
    }

    private companion object {
        const val LEAST = 256L
    }
}

/** Where a native call writes how it went: a code, and a buffer with the error if it failed. One a thread. */
private class CallStatus {
    val memory: Memory = Memory(SIZE).apply { clear() }

    fun throwIfFailed() {
        val code = memory.getByte(0)
        if (code == SUCCESS) return
        val error = RustBuffer.ByValue()
        error.capacity = memory.getLong(CAPACITY)
        error.len = memory.getLong(LENGTH)
        error.data = memory.getPointer(DATA)
        memory.clear()
        // Lifting frees the buffer.
        throw when (code) {
            ERROR -> CallException.lift(error)
            else ->
                InternalException(
                    if (error.len >
                        0
                    ) {
                        FfiConverterString.lift(error)
                    } else {
                        "the native library panicked"
                    },
                )
        }
    }

    private companion object {
        const val SUCCESS: Byte = 0
        const val ERROR: Byte = 1

        const val CAPACITY = 8L
        const val LENGTH = 16L
        const val DATA = 24L
        const val SIZE = 32L
    }
}
