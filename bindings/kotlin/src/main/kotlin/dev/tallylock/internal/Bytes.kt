package dev.tallylock.internal

import java.nio.ByteBuffer

/**
 * Bytes at an address of their own, as the native side borrows them for the time of a call.
 *
 * A key is laid there once, when its handle is made. Nobody moves the buffer's position, so threads may share it.
 */
internal fun ByteArray.toNative(): ByteBuffer = ByteBuffer.allocateDirect(size).put(this).flip()

/** A key as exceptions name it. */
internal fun ByteBuffer.toName(): String = Charsets.UTF_8.decode(duplicate()).toString()

/**
 * The text's UTF-8 bytes. Half of a surrogate pair has none: it is refused, or two keys would become one.
 *
 * @param key what a refusal is about, if it is not this text
 */
internal fun String.toUtf8(key: ByteBuffer? = null): ByteArray =
    try {
        encodeToByteArray(throwOnInvalidSequence = true)
    } catch (_: CharacterCodingException) {
        val name = key?.toName() ?: encodeToByteArray().decodeToString()
        throw invalidArgument(name, "a text has no half of a surrogate pair")
    }

/**
 * The text that these bytes are the UTF-8 of.
 *
 * @throws IllegalStateException if they are of none
 */
internal fun ByteArray.toText(): String =
    try {
        decodeToString(throwOnInvalidSequence = true)
    } catch (exception: CharacterCodingException) {
        throw IllegalStateException("the bytes are no UTF-8: take them as they are", exception)
    }
