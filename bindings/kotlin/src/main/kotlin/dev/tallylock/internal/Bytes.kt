package dev.tallylock.internal

import java.nio.ByteBuffer

/**
 * Bytes at an address of their own, as the native side borrows them for the time of a call.
 *
 * A key is laid there once, when its handle is made. Nobody moves the buffer's position, so threads may share it.
 */
internal fun ByteArray.toNative(): ByteBuffer = ByteBuffer.allocateDirect(size).put(this).flip()

/** The text's UTF-8 bytes, as the native side borrows them. */
internal fun String.toNative(): ByteBuffer = encodeToByteArray().toNative()
