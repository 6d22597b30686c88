package flights

import dev.tallylock.Client
import dev.tallylock.Counter
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.StandardOpenOption.APPEND
import java.nio.file.StandardOpenOption.CREATE
import kotlin.time.Duration
import kotlin.time.Duration.Companion.minutes
import kotlin.time.TimeSource

private val sessionTtl = 15.minutes

/**
 * Counts the usage of sessions: adds each flight's seconds to its aircraft's counter, all flights of a day at once.
 *
 * An aircraft that does not fly again has its session ended, and what was still pending is left in the file [finished].
 */
class SessionService(
    private val client: Client,
    private val finished: Path,
    private val refused: Path,
) {
    var secondsAdded = 0L
        private set
    var sessionsEnded = 0
        private set
    var rowsRefused = 0
        private set

    /** Serves the rows that [ours] picks, one day of the data after the other, a day lasting [dayLength]. */
    suspend fun serve(
        rows: List<Row>,
        ours: (Row) -> Boolean,
        dayLength: Duration,
    ) {
        append(refused, "line,flight,reason\n")
        val begin = TimeSource.Monotonic.markNow()
        val lastFlights = rows.filterIsInstance<Flight>().associateBy { it.session }
        val days = rows.groupBy { it.day }
        days.values.forEachIndexed { index, today ->
            delay(dayLength * index - begin.elapsedNow())
            val work = today.filter(ours)
            work.filterIsInstance<Refusal>().forEach(::refuse)
            addAll(work.filterIsInstance<Flight>())
            // When the month ends, those that still fly stay open: the billing jobs drain them.
            if (index < days.size - 1) {
                endAll(work.filterIsInstance<Flight>().filter { it == lastFlights[it.session] })
            }
        }
    }

    private suspend fun addAll(flights: List<Flight>) {
        coroutineScope {
            for (flight in flights) {
                launch { pending(flight.session).add(flight.airTime.inWholeSeconds) }
            }
        }
        secondsAdded += flights.sumOf { it.airTime.inWholeSeconds }
    }

    private suspend fun endAll(lastFlights: List<Flight>) {
        coroutineScope {
            for (flight in lastFlights) {
                launch { end(flight.session) }
            }
        }
        sessionsEnded += lastFlights.size
    }

    // What finish returns is gone from the server: it is on disk before anything else is done.
    private suspend fun end(session: String) {
        val left = pending(session).finish() ?: 0
        if (left > 0) {
            append(finished, "$session,$left\n")
        }
    }

    private fun refuse(row: Refusal) {
        append(refused, "${row.line},${row.flight},${row.reason}\n")
        rowsRefused += 1
    }

    private fun pending(session: String): Counter = client.counter("session:$session:billableSecondsPending", ttl = sessionTtl)
}

/** Each line is one write at the file's end, so that it stays whole beside those of other processes. */
private fun append(
    file: Path,
    line: String,
) {
    Files.write(file, line.toByteArray(), CREATE, APPEND)
}
