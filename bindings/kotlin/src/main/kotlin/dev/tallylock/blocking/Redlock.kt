package dev.tallylock.blocking

import dev.tallylock.Renewal
import dev.tallylock.internal.LockHandle
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toUtf8
import java.time.Duration
import dev.tallylock.Redlock as SuspendingRedlock

/**
 * [dev.tallylock.Redlock] with blocking verbs and Java's durations: locks on several independent servers, of which more than
 * half decide. Got from [dev.tallylock.Tallylock.connectRedlockBlocking] or [dev.tallylock.Redlock.blocking]; may be shared by
 * threads.
 *
 * The calling thread waits while the servers are asked at the same time. Only an [acquire][Lock.acquire] that waits parks the
 * thread, and can be interrupted.
 */
public class Redlock internal constructor(private val redlock: SuspendingRedlock) : AutoCloseable {
    /**
     * A lock on the servers. Its verbs are those of a lock on one server, but for [inspect][Lock.inspect] and
     * [steal][Lock.steal], which are about one: they throw [dev.tallylock.UnsupportedException].
     *
     * @param key the key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @param ttl how long a lease lasts that is not renewed, 3 ms to 10 years, rounded up to milliseconds
     * @param renewal whether and when leases are renewed while they are held
     * @param maxHold a lease is not renewed once it was held for so long, so that a holder that hangs loses it; `null` for no bound
     * @return a handle; any number of leases may be acquired from it, one after the other
     * @throws dev.tallylock.InvalidArgumentException if one of them is out of bounds; nothing is sent
     */
    @JvmOverloads
    public fun lock(
        key: String,
        ttl: Duration,
        renewal: Renewal = Renewal.Default,
        maxHold: Duration? = null,
    ): Lock = lock(key.toUtf8(), ttl, renewal, maxHold)

    /** A lock under a key of any bytes; otherwise as for a text. */
    @JvmOverloads
    public fun lock(
        key: ByteArray,
        ttl: Duration,
        renewal: Renewal = Renewal.Default,
        maxHold: Duration? = null,
    ): Lock = Lock(LockHandle(redlock.session, key, ttl.toMicros(), renewal, maxHold?.toMicros()))

    /**
     * What was counted of this client's locks; nothing is sent.
     *
     * @return the numbers of this moment
     * @throws dev.tallylock.ClosedException if the client is closed
     */
    public fun metrics(): Metrics = redlock.metrics().toBlocking()

    /**
     * Closes the client, the suspending one too; touches no data, so that locks that are held stay until their TTL ends.
     *
     * Later calls end with [dev.tallylock.ClosedException], and so do acquires that wait, which leave no lock behind. Other
     * calls under way run to their end; then the connections are closed. Closing again does nothing.
     */
    override fun close(): Unit = redlock.close()
}
