package dev.tallylock.internal

import dev.tallylock.Entry
import java.nio.ByteBuffer
import java.nio.ByteOrder

// The entries of a batch in the form that the native library's module `batch` describes.

/** An entry for an add, or for a keyed one. */
internal fun CounterHandle.entry(
    amount: Long,
    idempotencyKey: ByteArray? = null,
    rememberMicros: Long = 0,
): Entry {
    // None at all is how an add without a key is told from one with a key.
    if (idempotencyKey?.isEmpty() == true) throw invalidArgument(key.toName(), "an id has 1 to 512 bytes, not 0")
    return Entry(packed, amount, idempotencyKey, rememberMicros)
}

/** What the entries of a counter have in common: its settings and its key. */
internal fun packCounter(
    key: ByteBuffer,
    ttlMicros: Long,
    isFixed: Boolean,
): ByteArray {
    val fixed: Byte = if (isFixed) 1 else 0
    return ByteBuffer
        .allocate(Long.SIZE_BYTES + Byte.SIZE_BYTES + Int.SIZE_BYTES + key.remaining())
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(ttlMicros)
        .put(fixed)
        .putInt(key.remaining())
        .put(key.duplicate())
        .array()
}

/** All entries one after the other, as a call borrows them. */
internal fun Collection<Entry>.toNative(): ByteBuffer {
    val entries = toList()
    val size = Math.toIntExact(entries.sumOf { it.packedSize().toLong() })
    val packed = ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN)
    for (entry in entries) {
        packed.put(entry.counter).putLong(entry.amount)
        val key = entry.idempotencyKey
        if (key == null) packed.putInt(0) else packed.putInt(key.size).put(key).putLong(entry.rememberMicros)
    }
    return packed.flip()
}

private fun Entry.packedSize(): Int {
    val key = if (idempotencyKey == null) 0 else idempotencyKey.size + Long.SIZE_BYTES
    return counter.size + Long.SIZE_BYTES + Int.SIZE_BYTES + key
}
