package flights

import org.apache.commons.csv.CSVFormat
import org.apache.commons.csv.CSVRecord
import java.nio.file.Path
import kotlin.time.Duration
import kotlin.time.Duration.Companion.minutes

/** One row of the data, parsed: a flight to bill, or the reason why it is refused. */
sealed interface Row {
    val line: Int
    val day: String
}

/** [session] is the aircraft's tail number, [airTime] its usage. */
data class Flight(
    override val line: Int,
    override val day: String,
    val session: String,
    val airTime: Duration,
) : Row

/** [flight] is the carrier with the flight's number. */
data class Refusal(
    override val line: Int,
    override val day: String,
    val flight: String,
    val reason: String,
) : Row

/** The rows of a file of flights, in its order, which is that of the days. */
fun readRows(data: Path): List<Row> {
    val format =
        CSVFormat.DEFAULT
            .builder()
            .setHeader()
            .setSkipHeaderRecord(true)
            .get()
    return format.parse(data.toFile().bufferedReader()).use { records -> records.map(::parse) }
}

private fun parse(record: CSVRecord): Row {
    // The header is line 1, and no field spans lines.
    val line = record.recordNumber.toInt() + 1
    val day = "${record["month"]}-${record["day"]}"
    val session = record["tailnum"]
    val airMinutes = record["air_time"].toIntOrNull()
    val refuse = { reason: String -> Refusal(line, day, "${record["carrier"]} ${record["flight"]}", reason) }
    return when {
        airMinutes == null -> refuse("no air time")
        session.isEmpty() -> refuse("no tail number")
        else -> Flight(line, day, session, airMinutes.minutes)
    }
}
