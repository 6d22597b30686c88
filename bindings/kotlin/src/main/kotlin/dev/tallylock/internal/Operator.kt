package dev.tallylock.internal

import dev.tallylock.Holder

// What an operator finds or does, as the native library's module `operator` lays it out.

/** The holder of a lock; `null` for nobody. */
internal fun ByteArray.toHolder(): Holder? =
    Packed(this).run {
        if (!hasMore()) return null
        val remaining = remaining()
        val hasFence = byte() == 1
        val fence = long()
        Holder(bytes(), text().ifEmpty { null }, remaining, fence.takeIf { hasFence })
    }

/** The fence of a lock that was stolen, after it was logged who lost it and why; `null` if nothing was stolen. */
internal fun ByteArray.toLoggedFence(): Long? =
    Packed(this).run {
        if (!hasMore()) return null
        val fence = long()
        LOGGER.log(System.Logger.Level.WARNING, text())
        fence
    }

private val LOGGER: System.Logger = System.getLogger("dev.tallylock")
