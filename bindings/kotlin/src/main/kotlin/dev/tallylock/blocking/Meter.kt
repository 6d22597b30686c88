package dev.tallylock.blocking

import dev.tallylock.Flushed
import dev.tallylock.Refused
import dev.tallylock.TallylockException
import dev.tallylock.internal.MeterHandle
import dev.tallylock.internal.toUtf8

/**
 * [dev.tallylock.Meter] with blocking verbs, which throw the same exceptions. May be shared by threads; one that is forgotten
 * is not flushed.
 *
 * The verbs that wait park the thread. [flush] can be interrupted: it then goes on. [close] waits for its end, at most about as
 * long as a call may take if the server is away, since what it could not bring there is known to nobody else.
 */
public class Meter internal constructor(private val handle: MeterHandle) : AutoCloseable {
    /**
     * Adds to what is held for a counter; asks no server. If it throws, nothing is counted.
     *
     * @param key the counter's key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @param amount any number, 0 and negative ones too
     * @throws dev.tallylock.InvalidArgumentException if the key is out of bounds
     * @throws dev.tallylock.CounterOverflowException if the sum does not fit into 64 bits
     * @throws dev.tallylock.BusyException if the meter holds as many sums as it may
     * @throws dev.tallylock.UnavailableException if the journal cannot be written to
     * @throws dev.tallylock.ClosedException if the meter or its client is closed
     */
    public fun add(
        key: String,
        amount: Long,
    ): Unit = handle.add(key.toUtf8(), amount)

    /** Adds to a counter under a key of any bytes; otherwise as for a text. */
    public fun add(
        key: ByteArray,
        amount: Long,
    ): Unit = handle.add(key, amount)

    /**
     * Brings all that was added until now to the server.
     *
     * @return how much that was
     * @throws dev.tallylock.TallylockException with the code of the reason, if something still waits: the next flush sends it
     *   again, and nothing is counted twice
     * @throws dev.tallylock.ClosedException if the meter or its client is closed
     * @throws InterruptedException if the thread is interrupted
     */
    @Throws(InterruptedException::class)
    public fun flush(): Flushed = handle.flush { session.awaitParked(it) }

    /**
     * Takes the sums that the server refuses however often they are sent: they are the caller's from now on. Until they are
     * taken they count to what the meter may hold. Asks no server.
     *
     * @return what was refused, and why
     * @throws dev.tallylock.UnavailableException if it cannot be written to the journal that they were taken, which they are
     *   not then
     */
    public fun takeRefused(): List<Refused> = handle.takeRefused()

    /** Why the last flush, in the background or not, left something waiting; `null` if it did not. */
    public val trouble: TallylockException?
        get() = handle.trouble()

    /**
     * Lets nothing more in, and flushes once; may be called again. With a journal, what still waits stays there for the next
     * meter.
     *
     * @throws dev.tallylock.TallylockException without a journal, with the code of the reason, if something is not on the
     *   server; closing again flushes again
     */
    override fun close() {
        handle.close { session.awaitThrough(it) }
    }
}
