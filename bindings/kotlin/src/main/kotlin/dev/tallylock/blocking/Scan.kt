package dev.tallylock.blocking

import dev.tallylock.ffi.clientScan
import dev.tallylock.internal.Page
import dev.tallylock.internal.ScanHandle
import dev.tallylock.internal.lending
import dev.tallylock.internal.toPage
import dev.tallylock.internal.toUtf8
import java.time.Duration
import java.util.stream.Stream
import java.util.stream.StreamSupport
import kotlin.time.toJavaDuration
import dev.tallylock.CounterFound as SuspendingCounterFound

/**
 * The counters whose keys match a pattern, as they are found, a page of some hundreds at a time. Made by [Client.scan]
 * and [Client.expiring].
 *
 * Each iteration looks anew, from where the scan begins. A counter may be found twice, and one that comes or goes
 * meanwhile may be missed: that is what the server's SCAN gives.
 */
public class Scan internal constructor(private val handle: ScanHandle) : Iterable<CounterFound> {
    /**
     * Where the latest iteration stands: behind the last page that was read to its end. A scan made with it goes on from
     * there. `null` at the beginning, and at the end.
     */
    @Volatile
    public var cursor: String? = handle.cursor
        private set

    /**
     * Iterates over the counters. What goes wrong is thrown as the iterator goes on: [dev.tallylock.InvalidArgumentException]
     * if the scan was made with a cursor that is none, and what every call throws.
     *
     * @return an iterator for one thread, which holds a page
     */
    override fun iterator(): Iterator<CounterFound> =
        iterator {
            var place = handle.cursor
            do {
                val page = read(place)
                page.counters.forEach { yield(CounterFound(it)) }
                place = page.next
                cursor = place
            } while (place != null)
        }

    /**
     * The same as a stream.
     *
     * @return a sequential stream, which reads a page when it needs one
     */
    public fun stream(): Stream<CounterFound> = StreamSupport.stream(spliterator(), false)

    private fun read(place: String?): Page {
        val from = place.orEmpty().toUtf8()
        return handle.session
            .call { client -> lending { clientScan(client, lend(handle.pattern), lend(from), handle.withinMicros) } }
            .toPage()
    }
}

/**
 * A counter that a [Scan] has found.
 *
 * @property key its key
 * @property total what it held
 * @property remaining how long it had to live; `null` if it had lost its TTL
 */
public class CounterFound internal constructor(found: SuspendingCounterFound) {
    public val key: ByteArray = found.key
    public val total: Long = found.total
    public val remaining: Duration? = found.remaining?.toJavaDuration()
}
