package dev.tallylock

import dev.tallylock.internal.MeterHandle
import dev.tallylock.internal.toText
import dev.tallylock.internal.toUtf8
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.withContext

/**
 * Sums adds in memory and brings the sums to the server now and then, each once. Made by [Client.meter]; may be shared by
 * coroutines and threads. One that is forgotten is not flushed.
 *
 * What does not suspend asks no server.
 */
public class Meter internal constructor(private val handle: MeterHandle) {
    /**
     * Adds to what is held for a counter. If it throws, nothing is counted.
     *
     * @param key the counter's key, used as given; its UTF-8 has 1 byte to 16 KiB
     * @param amount any number, 0 and negative ones too
     * @throws InvalidArgumentException if the key is out of bounds
     * @throws CounterOverflowException if the sum does not fit into 64 bits
     * @throws BusyException if the meter holds as many sums as it may
     * @throws UnavailableException if the journal cannot be written to
     * @throws ClosedException if the meter or its client is closed
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
     * Brings all that was added until now to the server. If the coroutine is cancelled meanwhile, the flush goes on.
     *
     * @return how much that was
     * @throws TallylockException with the code of the reason, if something still waits: the next flush sends it again, and
     *   nothing is counted twice
     * @throws ClosedException if the meter or its client is closed
     */
    public suspend fun flush(): Flushed = handle.flush { session.await(it) }

    /**
     * Takes the sums that the server refuses however often they are sent: they are the caller's from now on. Until they are
     * taken they count to what the meter may hold.
     *
     * @return what was refused, and why
     * @throws UnavailableException if it cannot be written to the journal that they were taken, which they are not then
     */
    public fun takeRefused(): List<Refused> = handle.takeRefused()

    /** Why the last flush, in the background or not, left something waiting; `null` if it did not. */
    public val trouble: TallylockException?
        get() = handle.trouble()

    /**
     * Lets nothing more in, and flushes once; may be called again.
     *
     * @return what the flush has come to; with a journal, what still waits stays there for the next meter
     * @throws TallylockException without a journal, with the code of the reason, if something is not on the server; closing
     *   again flushes again
     */
    public suspend fun close(): Flushed = handle.close { session.await(it) }

    /**
     * Runs [body] and closes the meter, also if [body] throws or is cancelled. What [body] throws is what is thrown, with the
     * failure of the closing, if any, among its suppressed exceptions.
     *
     * @return what [body] returns
     * @throws TallylockException as [close] does, after [body]
     */
    public suspend fun <T> use(body: suspend (meter: Meter) -> T): T {
        val result =
            try {
                body(this)
            } catch (failure: Throwable) {
                try {
                    withContext(NonCancellable) { close() }
                } catch (second: TallylockException) {
                    failure.addSuppressed(second)
                }
                throw failure
            }
        withContext(NonCancellable) { close() }
        return result
    }
}

/**
 * What a flush has come to.
 *
 * @property settled how many sums are on the server now that were not, as far as was known, before
 * @property units how many units these are, by their absolute values, [Long.MAX_VALUE] at most
 * @property waiting how many sums that were there when the flush began still wait for the server
 * @property refused how many sums the server refused for good, to be [taken][Meter.takeRefused]
 */
public data class Flushed(
    public val settled: Long,
    public val units: Long,
    public val waiting: Long,
    public val refused: Long,
)

/**
 * A sum that is not sent any more.
 *
 * @property key the counter's key
 * @property amount the sum of the adds
 * @property exception why: an [OutcomeUnknownException] if all of it may have been counted, or nothing; for any other,
 *   nothing was
 */
public class Refused internal constructor(
    public val key: ByteArray,
    public val amount: Long,
    public val exception: TallylockException,
) {
    /**
     * The key as a text.
     *
     * @throws IllegalStateException if it is no UTF-8
     */
    public val keyText: String
        get() = key.toText()
}
