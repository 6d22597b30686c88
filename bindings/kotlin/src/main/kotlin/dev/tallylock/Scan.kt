package dev.tallylock

import dev.tallylock.ffi.submitClientScan
import dev.tallylock.internal.Page
import dev.tallylock.internal.ScanHandle
import dev.tallylock.internal.lending
import dev.tallylock.internal.toPage
import dev.tallylock.internal.toUtf8
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.FlowCollector
import kotlinx.coroutines.flow.flow
import kotlin.time.Duration

/**
 * The counters whose keys match a pattern, as they are found, a page of some hundreds at a time. Made by [Client.scan]
 * and [Client.expiring].
 *
 * Each collection looks anew, from where the scan begins. A counter may be found twice, and one that comes or goes
 * meanwhile may be missed: that is what the server's SCAN gives.
 */
public class Scan internal constructor(private val handle: ScanHandle) : Flow<CounterFound> {
    /**
     * Where the latest collection stands: behind the last page that was collected to its end. A scan made with it goes on
     * from there. `null` at the beginning, and at the end.
     */
    @Volatile
    public var cursor: String? = handle.cursor
        private set

    /**
     * Collects the counters.
     *
     * @throws InvalidArgumentException if the scan was made with a cursor that is none
     * @throws TallylockException as every call: `timeout`, `unavailable`, `forbidden`, `unsupported`, `closed`
     */
    override suspend fun collect(collector: FlowCollector<CounterFound>): Unit = counters().collect(collector)

    private fun counters(): Flow<CounterFound> =
        flow {
            var place = handle.cursor
            do {
                val page = read(place)
                page.counters.forEach { emit(it) }
                place = page.next
                cursor = place
            } while (place != null)
        }

    private suspend fun read(place: String?): Page {
        val from = place.orEmpty().toUtf8()
        return handle.session
            .await {
                client,
                ticket,
                ->
                lending { submitClientScan(client, ticket, lend(handle.pattern), lend(from), handle.withinMicros) }
            }.toBytes()
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
public class CounterFound internal constructor(
    public val key: ByteArray,
    public val total: Long,
    public val remaining: Duration?,
)
