package flights

import dev.tallylock.Tallylock
import kotlinx.coroutines.runBlocking
import org.apache.commons.cli.DefaultParser
import org.apache.commons.cli.Option
import org.apache.commons.cli.Options
import org.apache.commons.cli.ParseException
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
    runBlocking {
        Tallylock.connect(options.getOptionValue("url")).use { client ->
            val service =
                SessionService(
                    client,
                    finished = Path(options.getOptionValue("finished")),
                    refused = Path(options.getOptionValue("refused")),
                )
            service.serve(
                readRows(Path(options.getOptionValue("data"))),
                ours = { it.line % 2 == 0 },
                dayLength = options.getOptionValue("day-ms", "150").toInt().milliseconds,
            )
            println(
                "Kotlin service: added %,d seconds, ended %,d sessions, refused %,d rows"
                    .format(service.secondsAdded, service.sessionsEnded, service.rowsRefused),
            )
        }
    }
}

private val commandLine =
    Options()
        .addOption(required("url", "the Redis or Valkey server"))
        .addOption(required("data", "the flights, as CSV"))
        .addOption(required("finished", "the file to append ended sessions to"))
        .addOption(required("refused", "the file to list refused rows in"))
        .addOption(
            Option
                .builder()
                .longOpt("day-ms")
                .hasArg()
                .desc("how long a day lasts (default 150)")
                .get(),
        )

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
