package dev.tallylock.blocking

import dev.tallylock.AddResult
import dev.tallylock.Entry
import dev.tallylock.Expiry
import dev.tallylock.Renewal
import dev.tallylock.ffi.clientAddMany
import dev.tallylock.internal.CounterHandle
import dev.tallylock.internal.LockHandle
import dev.tallylock.internal.MeterHandle
import dev.tallylock.internal.NO_BOUND
import dev.tallylock.internal.ScanHandle
import dev.tallylock.internal.SweeperHandle
import dev.tallylock.internal.ValueHandle
import dev.tallylock.internal.lending
import dev.tallylock.internal.meterSettings
import dev.tallylock.internal.sweepArguments
import dev.tallylock.internal.toAddResults
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toNative
import dev.tallylock.internal.toUtf8
import dev.tallylock.internal.toWithinMicros
import java.nio.file.Path
import java.time.Duration
import kotlin.time.toKotlinDuration
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
     * How many counters had lost their TTL and were given it back by a drain or claim of this client.
     *
     * @throws dev.tallylock.ClosedException if the client is closed
     */
    public val healed: Long
        get() = client.healed

    /**
     * How many locks this client has stolen.
     *
     * @throws dev.tallylock.ClosedException if the client is closed
     */
    public val stolen: Long
        get() = client.stolen

    /**
     * What was counted of this client's locks and counters; nothing is sent.
     *
     * @return the numbers of this moment
     * @throws dev.tallylock.ClosedException if the client is closed
     */
    public fun metrics(): Metrics = client.metrics().toBlocking()

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
     * A value that only holders of a lock write.
     *
     * @param key the key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @return a handle
     * @throws dev.tallylock.InvalidArgumentException if the key is out of bounds; nothing is sent
     */
    public fun guarded(key: String): Guarded = guarded(key.toUtf8())

    /** A guarded value under a key of any bytes; otherwise as for a text. */
    public fun guarded(key: ByteArray): Guarded = Guarded(ValueHandle(client.session, key))

    /**
     * A lock.
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
    ): Lock = Lock(LockHandle(client.session, key, ttl.toMicros(), renewal, maxHold?.toMicros()))

    /**
     * A meter, which sums adds in memory and brings the sums to the server now and then. What is `null` is the default that all
     * languages share.
     *
     * @param ttl what a flush gives a counter to live, 1 ms to 10 years, rounded up to milliseconds
     * @param expiry whether each flush sets the TTL, or only one that finds none
     * @param interval how often is flushed
     * @param maxUnits how many units, by their absolute values, are flushed at once
     * @param maxCounters how many sums are held at most, those included that wait for the server or were refused
     * @param remember how long the server remembers what was flushed
     * @param journal a directory, made if it is not there, in which each add is written before it returns; a meter made with
     *   the same one later counts what this one did not come to
     * @return a meter, to be closed
     * @throws dev.tallylock.InvalidArgumentException if one of them is out of bounds, [remember] is too short for the client's time-out, or
     *   a file of the journal is damaged
     * @throws dev.tallylock.BusyException if another meter uses the journal
     * @throws dev.tallylock.TallylockException as every call: `unavailable` (also if the journal's directory cannot be used), `forbidden`,
     *   `unsupported`, `closed`
     * @throws InterruptedException if the thread is interrupted: then there is no meter
     */
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun meter(
        ttl: Duration,
        expiry: Expiry = Expiry.Sliding,
        interval: Duration? = null,
        maxUnits: Long? = null,
        maxCounters: Long? = null,
        remember: Duration? = null,
        journal: Path? = null,
    ): Meter {
        val settings =
            meterSettings(
                ttl.toMicros(),
                expiry,
                interval?.toMicros(),
                maxUnits,
                maxCounters,
                remember?.toMicros(),
                journal,
            )
        return Meter(MeterHandle.openParked(client.session, settings))
    }

    /**
     * Adds to any counters in one round trip. Each add is atomic and has a result of its own, so that a bad one neither
     * stops nor hides the others. After a lost reply those with an idempotency key are repeated by themselves; one without
     * may be `outcome_unknown`.
     *
     * @param entries up to 10,000, made by [Counter.entry]
     * @return the result of each entry, in the same order
     * @throws dev.tallylock.InvalidArgumentException if there are too many, or an idempotency key or how long it is to be remembered is
     *   out of bounds; nothing is sent
     * @throws dev.tallylock.ClosedException if the client is closed
     */
    public fun addMany(entries: Collection<Entry>): List<AddResult> =
        client.session.call { id -> lending { clientAddMany(id, lend(entries.toNative())) } }.toAddResults()

    /**
     * Looks through all keys of the server for counters. Sends nothing yet: iterating does.
     *
     * @param pattern what their keys match: `*` for any text, `?` for any byte, `[a-z]` for one of these
     * @param cursor where to go on, from the [cursor][Scan.cursor] of an earlier scan; `null` for the beginning
     * @return the counters, side keys and other texts left out
     */
    @JvmOverloads
    public fun scan(
        pattern: String,
        cursor: String? = null,
    ): Scan = scan(pattern.toUtf8(), cursor)

    /** The same with a pattern of any bytes. */
    @JvmOverloads
    public fun scan(
        pattern: ByteArray,
        cursor: String? = null,
    ): Scan = Scan(ScanHandle(client.session, pattern, cursor, NO_BOUND))

    /**
     * Looks through all keys of the server for counters that hold something and end soon, or have lost their TTL. Sends
     * nothing yet: iterating does.
     *
     * @param pattern what their keys match, as for [scan]
     * @param within how soon they end, 0 or more
     * @param cursor where to go on, from the [cursor][Scan.cursor] of an earlier scan; `null` for the beginning
     * @return the counters
     * @throws dev.tallylock.InvalidArgumentException if [within] is negative
     */
    @JvmOverloads
    public fun expiring(
        pattern: String,
        within: Duration,
        cursor: String? = null,
    ): Scan = expiring(pattern.toUtf8(), within, cursor)

    /** The same with a pattern of any bytes. */
    @JvmOverloads
    public fun expiring(
        pattern: ByteArray,
        within: Duration,
        cursor: String? = null,
    ): Scan = Scan(ScanHandle(client.session, pattern, cursor, within.toKotlinDuration().toWithinMicros()))

    /**
     * A sweeper, which bills counters before they end or once they hold much. Sends nothing yet.
     *
     * @param pattern what the counters' keys match, as for [scan]; it should match counters and nothing else
     * @param ttl for a counter that has lost its TTL, or is gone when a claim on it is refused, 1 ms to 10 years
     * @param lock the key of the lock under which one sweeper works at a time; its UTF-8 has 1 to 473 bytes. It is a part of
     *   the claims' ids, so another lock does not find what was left open under this one. Billers that drain or claim these
     *   counters with a fence use this lock too
     * @param lockTtl how long the lock lasts without being extended, which is done between two claims: longer than the
     *   callback takes for one
     * @param within bills those that hold something and end within this time, or have lost their TTL
     * @param atLeast bills those that hold at least so much, 1 or more; one of the two is given, or both
     * @param wait how long to wait for the lock while another sweeper is at work
     * @throws dev.tallylock.InvalidArgumentException if one of them is out of bounds
     */
    @JvmOverloads
    public fun sweeper(
        pattern: String,
        ttl: Duration,
        lock: String,
        lockTtl: Duration,
        within: Duration?,
        atLeast: Long? = null,
        wait: Duration = Duration.ZERO,
    ): Sweeper =
        Sweeper(
            SweeperHandle(
                client.session,
                sweepArguments(
                    pattern.toUtf8(),
                    ttl.toMicros(),
                    lock,
                    lockTtl.toMicros(),
                    within?.toMicros(),
                    atLeast,
                    wait.toMicros(),
                ),
            ),
        )

    /**
     * Closes the client, the suspending one too; touches no data, so that locks that are held stay until their TTL ends.
     *
     * Later calls end with [dev.tallylock.ClosedException], and so do acquires that wait, which leave no lock behind. Other
     * calls under way run to their end; then the connections are closed. Closing again does nothing.
     */
    override fun close(): Unit = client.close()
}
