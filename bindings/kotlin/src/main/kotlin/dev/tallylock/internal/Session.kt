package dev.tallylock.internal

import java.lang.ref.Cleaner
import java.lang.ref.Reference
import dev.tallylock.ffi.close as closeClient
import dev.tallylock.ffi.leaseFree as freeLease
import dev.tallylock.ffi.meterFree as freeMeter
import dev.tallylock.ffi.submitConnect as submitConnectClient

/**
 * A native client, named by [id], and its calls in the background.
 *
 * A session that is forgotten is closed when it is collected. Its receiving thread knows [completions] only, and would
 * not keep it: each call must, until it has ended.
 */
internal class Session private constructor(private val id: ULong) {
    private val completions = Completions(id)
    private val cleanable = CLEANER.register(this, CloseClient(id))

    /** Runs a call that does its I/O on the calling thread. */
    inline fun <T> call(native: (client: ULong) -> T): T =
        try {
            translated { native(id) }
        } finally {
            Reference.reachabilityFence(this)
        }

    /** Runs a call in the background and suspends until it has ended; a cancelled coroutine gives it up. */
    suspend fun await(submit: (client: ULong, ticket: ULong) -> Unit): Outcome =
        try {
            completions.await { ticket -> submit(id, ticket) }
        } finally {
            Reference.reachabilityFence(this)
        }

    /** The same, but the call of a cancelled coroutine runs on, and [unseen] has its outcome. */
    suspend fun awaitOrLeave(
        submit: (client: ULong, ticket: ULong) -> Unit,
        unseen: (outcome: Outcome) -> Unit,
    ): Outcome =
        try {
            completions.awaitOrLeave({ ticket -> submit(id, ticket) }, unseen)
        } finally {
            Reference.reachabilityFence(this)
        }

    /** Runs a call in the background and parks the thread until it has ended; an interrupted thread gives it up. */
    fun awaitParked(submit: (client: ULong, ticket: ULong) -> Unit): Outcome =
        try {
            completions.awaitParked { ticket -> submit(id, ticket) }
        } finally {
            Reference.reachabilityFence(this)
        }

    /** The same, but an interrupted thread waits on. */
    fun awaitThrough(submit: (client: ULong, ticket: ULong) -> Unit): Outcome =
        try {
            completions.awaitThrough { ticket -> submit(id, ticket) }
        } finally {
            Reference.reachabilityFence(this)
        }

    /** Runs a call in the background, and brings its outcome to [told], which does not throw and does not keep this. */
    fun submit(
        submit: (client: ULong, ticket: ULong) -> Unit,
        told: (outcome: Outcome) -> Unit,
    ): Unit =
        try {
            completions.submit({ ticket -> submit(id, ticket) }, told)
        } finally {
            Reference.reachabilityFence(this)
        }

    /** Closes the client; acquires under way end as `closed`, other calls run to their end. Touches no data. */
    fun close(): Unit = cleanable.clean()

    companion object {
        /** Opens a client by [native], and connects it in the background. */
        suspend fun open(native: () -> ULong): Session {
            val session = opened(native)
            try {
                session.await { client, ticket -> submitConnectClient(client, ticket) }.toUnit()
            } catch (failure: Throwable) {
                session.close()
                throw failure
            }
            return session
        }

        /** Opens a client by [native], which connects it too. */
        fun opened(native: () -> ULong): Session = Session(translated(native))
    }
}

/**
 * The id of a native lease, freed when this object is collected. Freeing it releases nothing: the lock of a forgotten
 * lease ends with its TTL.
 */
internal class LeaseId(id: ULong) : NativeId(id, FreeLease(id))

/** The id of a native meter, freed without a flush when this object is collected. */
internal class MeterId(id: ULong) : NativeId(id, FreeMeter(id))

/** The id of something native, freed when this object is collected. */
internal sealed class NativeId(
    private val id: ULong,
    free: Runnable,
) {
    init {
        CLEANER.register(this, free)
    }

    /** Runs a call that names it. */
    inline fun <T> call(native: (id: ULong) -> T): T =
        try {
            translated { native(id) }
        } finally {
            Reference.reachabilityFence(this)
        }
}

private val CLEANER: Cleaner = Cleaner.create()

// Of classes of their own, so that they cannot hold what they are to be run after.
private class CloseClient(private val id: ULong) : Runnable {
    override fun run(): Unit = closeClient(id)
}

private class FreeLease(private val id: ULong) : Runnable {
    override fun run(): Unit = freeLease(id)
}

private class FreeMeter(private val id: ULong) : Runnable {
    override fun run(): Unit = freeMeter(id)
}
