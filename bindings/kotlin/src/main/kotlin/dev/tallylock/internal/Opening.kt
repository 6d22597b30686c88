package dev.tallylock.internal

import dev.tallylock.Owner
import dev.tallylock.ffi.connectRedlock
import dev.tallylock.ffi.openRedlock
import dev.tallylock.ffi.connect as connectClient
import dev.tallylock.ffi.open as openClient

// What clients are opened with, in native form, and the native calls that take it.

/** For a client of one server. */
internal class ServerArguments(
    private val url: String,
    private val timeoutMicros: Long?,
    private val owner: Owner,
    private val avoidScripts: Boolean,
) {
    init {
        checkHasUtf8(url, "a URL")
        checkLabel(owner)
    }

    fun open(): ULong = openClient(url, timeoutMicros, owner.label(), owner == Owner.None, avoidScripts)

    fun connect(): ULong = connectClient(url, timeoutMicros, owner.label(), owner == Owner.None, avoidScripts)
}

/** For a client of several. */
internal class SeveralServersArguments(
    urls: Collection<String>,
    private val timeoutMicros: Long?,
    private val nodeTimeoutMicros: Long?,
    private val rejoin: Boolean,
    private val owner: Owner,
    private val avoidScripts: Boolean,
) {
    // The caller's may change meanwhile.
    private val urls = urls.toList()

    init {
        this.urls.forEach { checkHasUtf8(it, "a URL") }
        checkLabel(owner)
    }

    fun open(): ULong =
        openRedlock(
            urls,
            nodeTimeoutMicros,
            rejoin,
            timeoutMicros,
            owner.label(),
            owner == Owner.None,
            avoidScripts,
        )

    fun connect(): ULong =
        connectRedlock(
            urls,
            nodeTimeoutMicros,
            rejoin,
            timeoutMicros,
            owner.label(),
            owner == Owner.None,
            avoidScripts,
        )
}

private fun Owner.label(): String? = (this as? Owner.Label)?.text

private fun checkLabel(owner: Owner) {
    owner.label()?.let { checkHasUtf8(it, "an owner's label") }
}

/** Refuses half of a surrogate pair, which cannot cross the boundary. Says nothing of the text: it may hold a password. */
private fun checkHasUtf8(
    text: String,
    what: String,
) {
    try {
        text.encodeToByteArray(throwOnInvalidSequence = true)
    } catch (_: CharacterCodingException) {
        throw invalidArgument(null, "$what has no half of a surrogate pair")
    }
}
