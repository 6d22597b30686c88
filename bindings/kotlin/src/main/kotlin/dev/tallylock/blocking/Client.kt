package dev.tallylock.blocking

import dev.tallylock.Expiry
import dev.tallylock.internal.CounterHandle
import dev.tallylock.internal.LockHandle
import dev.tallylock.internal.ValueHandle
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toUtf8
import java.time.Duration
import dev.tallylock.Client as SuspendingClient

/**
 * A client whose verbs block, with Java's durations: for Java, and for Kotlin without coroutines. Got from
 * [dev.tallylock.Tallylock.connectBlocking] or [dev.tallylock.Client.blocking]; may be shared by threads.
 *
 * A call does its input and output on the calling thread. Only an [acquire][Lock.acquire] that waits parks the thread,
 * and can be interrupted.
 */
public class Client internal constructor(private val client: SuspendingClient) : AutoCloseable {
    /**
     * The test face of this client's server in memory.
     *
     * @return `null` unless the URL is `memory://`
     * @throws dev.tallylock.ClosedException if the client is closed
     */
    public val memory: Memory?
        get() = client.memory?.let(::Memory)

    /**
     * How many counters had lost their TTL and were given it back by a drain of this client.
     *
     * @throws dev.tallylock.ClosedException if the client is closed
     */
    public val healed: Long
        get() = client.healed

    /**
     * A counter.
     *
     * @param key the key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @param ttl what a write gives the counter to live, 1 ms to 10 years, rounded up to milliseconds
     * @param expiry whether each add sets the TTL, or only one that finds none
     * @return a handle
     * @throws dev.tallylock.InvalidArgumentException if key or TTL is out of bounds; nothing is sent
     */
    @JvmOverloads
    public fun counter(
        key: String,
        ttl: Duration,
        expiry: Expiry = Expiry.Sliding,
    ): Counter = counter(key.toUtf8(), ttl, expiry)

    /** A counter under a key of any bytes; otherwise as for a text. */
    @JvmOverloads
    public fun counter(
        key: ByteArray,
        ttl: Duration,
        expiry: Expiry = Expiry.Sliding,
    ): Counter = Counter(CounterHandle(client.session, key, ttl.toMicros(), expiry))

    /**
     * A value: a text of any bytes that is changed only where it already is.
     *
     * @param key the key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @return a handle
     * @throws dev.tallylock.InvalidArgumentException if the key is out of bounds; nothing is sent
     */
    public fun value(key: String): Value = value(key.toUtf8())

    /** A value under a key of any bytes; otherwise as for a text. */
    public fun value(key: ByteArray): Value = Value(ValueHandle(client.session, key))

    /**
     * A lock.
     *
     * @param key the key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @param ttl how long a lease lasts unless it is extended, 3 ms to 10 years, rounded up to milliseconds
     * @return a handle; any number of leases may be acquired from it, one after the other
     * @throws dev.tallylock.InvalidArgumentException if key or TTL is out of bounds; nothing is sent
     */
    public fun lock(
        key: String,
        ttl: Duration,
    ): Lock = lock(key.toUtf8(), ttl)

    /** A lock under a key of any bytes; otherwise as for a text. */
    public fun lock(
        key: ByteArray,
        ttl: Duration,
    ): Lock = Lock(LockHandle(client.session, key, ttl.toMicros()))

    /**
     * Closes the client, the suspending one too; touches no data, so that locks that are held stay until their TTL ends.
     *
     * Later calls end with [dev.tallylock.ClosedException], and so do acquires that wait, which leave no lock behind. Other
     * calls under way run to their end; then the connections are closed. Closing again does nothing.
     */
    override fun close(): Unit = client.close()
}
