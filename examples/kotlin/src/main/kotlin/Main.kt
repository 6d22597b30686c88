package flights

import dev.tallylock.Tallylock
import kotlinx.coroutines.runBlocking
import org.apache.commons.cli.DefaultParser
import org.apache.commons.cli.Option
import org.apache.commons.cli.Options
import org.apache.commons.cli.ParseException
import java.time.Instant
import kotlin.io.path.Path
import kotlin.system.exitProcess
import kotlin.time.Duration.Companion.milliseconds

/** The Kotlin service of the demo: serves the rows on even lines of the data. */
fun main(arguments: Array<String>) {
    val options =
        try {
            DefaultParser().parse(commandLine, arguments)
        } catch (mistake: ParseException) {
            System.err.println(mistake.message)
            exitProcess(2)
        }
    val given = { option: String -> options.getOptionValue(option) }
    runBlocking {
        // A reply may be lost of the connecting, too.
        asking { Tallylock.connect(given("url")) }.use { client ->
            Tallylock.connect(given("finish-url")).use { finishing ->
                val service = SessionService(client, finishing, Path(given("finished")), Path(given("refused")))
                service.serve(
                    readRows(Path(given("data"))),
                    ours = { it.line % 2 == 0 },
                    dayLength = given("day-ms").toInt().milliseconds,
                    began = Instant.ofEpochMilli(given("began-ms").toLong()),
                )
                println(
                    "Kotlin service: added %,d seconds, ended %,d sessions, refused %,d rows; %,d adds were repeats"
                        .format(service.secondsServed, service.sessionsEnded, service.rowsRefused, service.repeats),
                )
            }
        }
    }
}

private val commandLine =
    Options()
        .addOption(required("url", "the Redis or Valkey server"))
        .addOption(required("finish-url", "the same server, on a way that loses no replies: there sessions are ended"))
        .addOption(required("data", "the flights, as CSV"))
        .addOption(required("finished", "the file to append ended sessions to"))
        .addOption(required("refused", "the file to list refused rows in"))
        .addOption(required("day-ms", "how long a day lasts"))
        .addOption(required("began-ms", "when the first day began, in milliseconds since 1970"))

private fun required(
    name: String,
    description: String,
): Option =
    Option
        .builder()
        .longOpt(name)
        .hasArg()
        .required()
        .desc(description)
        .get()
