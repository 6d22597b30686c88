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
import java.time.Instant
import java.util.concurrent.atomic.AtomicInteger
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

private val sessionTtl = 15.minutes
private val guestTtl = 30.seconds

/**
 * Counts the usage of sessions: adds each flight's seconds to its aircraft's counter, all flights of a day at once. A
 * flight's key makes its seconds count once, however often they are sent.
 *
 * An aircraft that does not fly again has its session ended, and what was still pending is left in the file [finished].
 */
class SessionService(
    private val client: Client,
    // finish can't be repeated, and a lost reply would be a lost amount: a connection on which none is lost, in a process
    // that nobody kills.
    private val finishing: Client,
    private val finished: Path,
    private val refused: Path,
) {
    var secondsServed = 0L
        private set
    var sessionsEnded = 0
        private set
    var rowsRefused = 0
        private set
    private val repeated = AtomicInteger()

    // Those that fly but once: nobody ends their sessions, and their counters live for seconds.
    private var guests = setOf<String>()

    /** Adds that found their flight counted: its reply was lost. */
    val repeats: Int get() = repeated.get()

    /**
     * Serves the rows that [ours] picks, one day of the data after the other, a day lasting [dayLength] and the first one
     * from when it [began]; days that have passed already, at once.
     */
    suspend fun serve(
        rows: List<Row>,
        ours: (Row) -> Boolean,
        dayLength: Duration,
        began: Instant,
    ) {
        append(refused, "line,flight,reason\n")
        val lastFlights = rows.filterIsInstance<Flight>().associateBy { it.session }
        guests = flyingOnce(rows.filterIsInstance<Flight>())
        val days = rows.groupBy { it.day }
        days.values.forEachIndexed { index, today ->
            delay(dayLength * index - since(began))
            val work = today.filter(ours)
            work.filterIsInstance<Refusal>().forEach(::refuse)
            addAll(work.filterIsInstance<Flight>(), began)
            // When the month ends, those that still fly stay open: the billing jobs claim what they hold.
            if (index < days.size - 1) {
                endAll(work.filterIsInstance<Flight>().filter { it == lastFlights[it.session] && it.session !in guests })
            }
        }
    }

    private suspend fun addAll(
        flights: List<Flight>,
        began: Instant,
    ) {
        coroutineScope {
            for (flight in flights) {
                launch { add(flight, began) }
            }
        }
        secondsServed += flights.sumOf { it.airTime.inWholeSeconds }
    }

    private suspend fun add(
        flight: Flight,
        began: Instant,
    ) {
        // The server remembers it for a day, and there may be other runs on that.
        val idempotencyKey = "run-${began.toEpochMilli()}-line-${flight.line}"
        val added = asking { pending(flight.session).add(flight.airTime.inWholeSeconds, idempotencyKey) }
        if (!added.applied) {
            repeated.incrementAndGet()
        }
    }

    private fun pending(session: String): Counter =
        if (session in guests) {
            client.counter("guest:$session:billableSecondsPending", ttl = guestTtl)
        } else {
            session(client, session)
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
        val left = session(finishing, session).finish() ?: 0
        if (left > 0) {
            append(finished, "$session,$left\n")
        }
    }

    private fun refuse(row: Refusal) {
        append(refused, "${row.line},${row.flight},${row.reason}\n")
        rowsRefused += 1
    }
}

private fun since(moment: Instant): Duration = (System.currentTimeMillis() - moment.toEpochMilli()).milliseconds

private fun flyingOnce(flights: List<Flight>): Set<String> {
    val counts = flights.groupingBy { it.session }.eachCount()
    return counts.filterValues { it == 1 }.keys
}

private fun session(
    client: Client,
    session: String,
): Counter = client.counter("session:$session:billableSecondsPending", ttl = sessionTtl)

/** Each line is one write at the file's end, so that it stays whole beside those of other processes. */
private fun append(
    file: Path,
    line: String,
) {
    Files.write(file, line.toByteArray(), CREATE, APPEND)
}
