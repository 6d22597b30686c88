package dev.tallylock

import dev.tallylock.ffi.clientHasMemory
import dev.tallylock.ffi.clientHealed
import dev.tallylock.internal.CounterHandle
import dev.tallylock.internal.LockHandle
import dev.tallylock.internal.Session
import dev.tallylock.internal.ValueHandle
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toUtf8
import kotlin.time.Duration
import dev.tallylock.blocking.Client as BlockingClient

/**
 * A connection to a server, for any number of coroutines at once. Handles are made freely: only their verbs talk to the
 * server.
 *
 * Each verb suspends without holding a thread. Cancelling its coroutine ends it; an [acquire][Lock.acquire] that is
 * cancelled leaves no lock behind. A write that is cancelled on its way may still be applied.
 */
public class Client internal constructor(internal val session: Session) : AutoCloseable {
    /** The same client with blocking verbs and Java's durations; closing one closes the other. */
    public val blocking: BlockingClient = BlockingClient(this)

    /**
     * The test face of this client's server in memory.
     *
     * @return `null` unless the URL is `memory://`
     * @throws ClosedException if the client is closed
     */
    public val memory: Memory?
        get() = if (session.call(::clientHasMemory)) Memory(session) else null

    /**
     * How many counters had lost their TTL and were given it back by a drain of this client.
     *
     * @throws ClosedException if the client is closed
     */
    public val healed: Long
        get() = session.call(::clientHealed).toLong()

    /**
     * A counter.
     *
     * @param key the key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @param ttl what a write gives the counter to live, 1 ms to 10 years, rounded up to milliseconds
     * @param expiry whether each add sets the TTL, or only one that finds none
     * @return a handle
     * @throws InvalidArgumentException if key or TTL is out of bounds; nothing is sent
     */
    public fun counter(
        key: String,
        ttl: Duration,
        expiry: Expiry = Expiry.Sliding,
    ): Counter = counter(key.toUtf8(), ttl, expiry)

    /** A counter under a key of any bytes; otherwise as for a text. */
    public fun counter(
        key: ByteArray,
        ttl: Duration,
        expiry: Expiry = Expiry.Sliding,
    ): Counter = Counter(CounterHandle(session, key, ttl.toMicros(), expiry))

    /**
     * A value: a text of any bytes that is changed only where it already is.
     *
     * @param key the key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @return a handle
     * @throws InvalidArgumentException if the key is out of bounds; nothing is sent
     */
    public fun value(key: String): Value = value(key.toUtf8())

    /** A value under a key of any bytes; otherwise as for a text. */
    public fun value(key: ByteArray): Value = Value(ValueHandle(session, key))

    /**
     * A lock.
     *
     * @param key the key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @param ttl how long a lease lasts unless it is extended, 3 ms to 10 years, rounded up to milliseconds
     * @return a handle; any number of leases may be acquired from it, one after the other
     * @throws InvalidArgumentException if key or TTL is out of bounds; nothing is sent
     */
    public fun lock(
        key: String,
        ttl: Duration,
    ): Lock = lock(key.toUtf8(), ttl)

    /** A lock under a key of any bytes; otherwise as for a text. */
    public fun lock(
        key: ByteArray,
        ttl: Duration,
    ): Lock = Lock(LockHandle(session, key, ttl.toMicros()))

    /**
     * Closes the client; touches no data, so that locks that are held stay until their TTL ends.
     *
     * Later calls end with [ClosedException], and so do acquires under way, which leave no lock behind. Other calls under
     * way run to their end; then the connection is closed. Closing again does nothing.
     */
    override fun close(): Unit = session.close()
}
