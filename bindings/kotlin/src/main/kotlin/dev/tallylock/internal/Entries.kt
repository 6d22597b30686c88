package dev.tallylock.internal

import dev.tallylock.Entry
import java.nio.ByteBuffer
import java.nio.ByteOrder

// The entries of a batch in the form that the core's module `counter::packed` describes.

/** An entry for an add, or for a keyed one. */
internal fun CounterHandle.entry(
    amount: Long,
    idempotencyKey: ByteArray? = null,
    rememberMicros: Long? = null,
): Entry = Entry(packed, amount, idempotencyKey, rememberMicros)

/** What the entries of a counter have in common: its settings and its key. */
internal fun packCounter(
    key: NativeBytes,
    ttlMicros: Long,
    isFixed: Boolean,
): ByteArray {
    val fixed: Byte = if (isFixed) 1 else 0
    return ByteBuffer
        .allocate(Long.SIZE_BYTES + Byte.SIZE_BYTES + Int.SIZE_BYTES + key.size)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(ttlMicros)
        .put(fixed)
        .putInt(key.size)
        .apply(key::writeTo)
        .array()
}

/** All entries one after the other, as a call borrows them. */
internal fun Collection<Entry>.toNative(): NativeBytes {
    val entries = toList()
    val size = Math.toIntExact(entries.sumOf { it.packedSize().toLong() })
    return NativeBytes(size) {
        order(ByteOrder.LITTLE_ENDIAN)
        for (entry in entries) {
            put(entry.counter).putLong(entry.amount).put(entry.kind())
            entry.idempotencyKey?.let { putInt(it.size).put(it) }
            entry.rememberMicros?.let(::putLong)
        }
    }
}

private fun Entry.packedSize(): Int {
    val key = if (idempotencyKey == null) 0 else Int.SIZE_BYTES + idempotencyKey.size
    val remember = if (rememberMicros == null) 0 else Long.SIZE_BYTES
    return counter.size + Long.SIZE_BYTES + Byte.SIZE_BYTES + key + remember
}

private fun Entry.kind(): Byte =
    when {
        idempotencyKey == null -> PLAIN
        rememberMicros == null -> KEYED
        else -> KEYED_FOR_A_TIME
    }

private const val PLAIN: Byte = 0
private const val KEYED: Byte = 1
private const val KEYED_FOR_A_TIME: Byte = 2
