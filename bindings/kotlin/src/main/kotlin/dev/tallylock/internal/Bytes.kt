package dev.tallylock.internal

import java.nio.ByteBuffer

/**
 * Bytes at an address of their own, as the native side borrows them for the time of a call.
 *
 * A key is laid there once, when its handle is made. Nobody moves the buffer's position, so threads may share it.
 */
internal fun ByteArray.toNative(): ByteBuffer = ByteBuffer.allocateDirect(size).put(this).flip()

/**
 * The text's UTF-8 bytes. Half of a surrogate pair has none: it is refused, or two keys would become one.
 *
 * @param key what a refusal is about, if it is not this text
 */
internal fun String.toUtf8(key: ByteBuffer? = null): ByteArray =
    try {
        encodeToByteArray(throwOnInvalidSequence = true)
    } catch (_: CharacterCodingException) {
        val name = key?.let { Charsets.UTF_8.decode(it.duplicate()).toString() } ?: encodeToByteArray().decodeToString()
        throw Failure(
            code = "invalid_argument",
            reason = null,
            key = name,
            // In the words of the core, which cannot be given such a text.
            detail =
                "invalid_argument, key \"$name\": a text has no half of a surrogate pair; " +
                    "correct the argument; nothing was sent",
            applied = "no",
        ).toException()
    }
