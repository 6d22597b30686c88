package dev.tallylock

import dev.tallylock.ffi.clientMetrics
import dev.tallylock.internal.LockHandle
import dev.tallylock.internal.Session
import dev.tallylock.internal.toMetrics
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toUtf8
import kotlin.time.Duration
import dev.tallylock.blocking.Redlock as BlockingRedlock

/**
 * A connection to several independent servers, of which more than half decide about each lock, so that a minority may be
 * down, hung or slow. It has locks only. For any number of coroutines at once.
 *
 * Each verb suspends without holding a thread. An [acquire][Lock.acquire] that is cancelled leaves no lock behind, on any of
 * the servers. Exceptions count the servers: `granted by 2, held by another on 2, unreachable 1 of 5 nodes`.
 */
public class Redlock internal constructor(internal val session: Session) : AutoCloseable {
    /** The same client with blocking verbs and Java's durations; closing one closes the other. */
    public val blocking: BlockingRedlock = BlockingRedlock(this)

    /**
     * A lock on the servers. Its verbs are those of a lock on one server, but for [inspect][Lock.inspect] and
     * [steal][Lock.steal], which are about one: they throw [UnsupportedException].
     *
     * @param key the key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @param ttl how long a lease lasts that is not renewed, 3 ms to 10 years, rounded up to milliseconds
     * @param renewal whether and when leases are renewed while they are held
     * @param maxHold a lease is not renewed once it was held for so long, so that a holder that hangs loses it; `null` for no bound
     * @return a handle; any number of leases may be acquired from it, one after the other
     * @throws InvalidArgumentException if one of them is out of bounds; nothing is sent
     */
    public fun lock(
        key: String,
        ttl: Duration,
        renewal: Renewal = Renewal.Default,
        maxHold: Duration? = null,
    ): Lock = lock(key.toUtf8(), ttl, renewal, maxHold)

    /** A lock under a key of any bytes; otherwise as for a text. */
    public fun lock(
        key: ByteArray,
        ttl: Duration,
        renewal: Renewal = Renewal.Default,
        maxHold: Duration? = null,
    ): Lock = Lock(LockHandle(session, key, ttl.toMicros(), renewal, maxHold?.toMicros()))

    /**
     * What was counted of this client's locks; nothing is sent.
     *
     * @return the numbers of this moment
     * @throws ClosedException if the client is closed
     */
    public fun metrics(): Metrics = session.call(::clientMetrics).toMetrics()

    /**
     * Closes the client; touches no data, so that locks that are held stay until their TTL ends.
     *
     * Later calls end with [ClosedException], and so do acquires under way, which leave no lock behind. Other calls under
     * way run to their end; then the connections are closed. Closing again does nothing.
     */
    override fun close(): Unit = session.close()
}
