package dev.tallylock

import claims.Invoices
import claims.bill
import claims.main
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.CsvSource
import java.io.ByteArrayOutputStream
import java.io.PrintStream
import java.lang.reflect.InvocationTargetException
import java.lang.reflect.Proxy
import java.nio.file.Path
import java.sql.Connection
import java.sql.DriverManager
import java.sql.PreparedStatement
import kotlin.time.Duration
import kotlin.time.Duration.Companion.days

/** The pattern of examples/kotlin: its biller is killed at each of its steps, and the invoices balance. */
class ClaimsPatternTest {
    @TempDir
    private lateinit var folder: Path

    @ParameterizedTest
    @CsvSource("PT0S, true", "PT0S, false", "PT25H, true", "PT25H, false")
    fun aBillerThatIsKilledAtAnyStepLosesAndDoublesNothing(
        pause: String,
        addsMeanwhile: Boolean,
    ) = runBlocking {
        var place = 0
        var wasKilled = true
        while (wasKilled) {
            Tallylock.connect("memory://").use { client ->
                val pending = client.counter(KEY, 30.days)
                pending.add(30)
                wasKilled = killedAt(place, pending)
                if (addsMeanwhile) pending.add(5)
                client.memory!!.advance(Duration.parse(pause))
                database(place).use { database ->
                    val invoices = Invoices(database)
                    // The first time ends what was left, the second takes what came meanwhile.
                    bill(pending, SESSION, invoices)
                    bill(pending, SESSION, invoices)
                    val added = if (addsMeanwhile) 35L else 30L
                    assertEquals(added, invoices.total(SESSION), "killed at $place")
                }
                assertEquals(0, pending.read())
                assertEquals(emptyList<OpenClaim>(), pending.claims())
            }
            place += 1
        }
        // Both sides of each statement and of each commit, between which are the verbs.
        assertTrue(place > 20, "only $place steps")
    }

    @Test
    fun aClaimThatWasAbortedByHandIsBilledWithTheNext() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                val pending = client.counter(KEY, 1.days)
                pending.add(30)
                database(0).use { database ->
                    val invoices = Invoices(database)
                    val claim = invoices.begin(SESSION)
                    pending.claim(claim)
                    pending.abort(claim)
                    assertNull(bill(pending, SESSION, invoices))
                    assertEquals(30, bill(pending, SESSION, invoices))
                    assertEquals(30, invoices.total(SESSION))
                }
            }
        }

    @Test
    fun nothingToBillKeepsTheClaimForTheNextTime() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                val pending = client.counter(KEY, 1.days)
                database(0).use { database ->
                    val invoices = Invoices(database)
                    assertNull(bill(pending, SESSION, invoices))
                    pending.add(30)
                    // A copy of that claim comes only now.
                    pending.claim(invoices.begin(SESSION))
                    assertEquals(30, bill(pending, SESSION, invoices))
                    assertEquals(listOf(30L, 0L), listOf(invoices.total(SESSION), pending.read()))
                }
            }
        }

    @Test
    fun theExampleBillsThirtySeconds() {
        val said = ByteArrayOutputStream()
        val console = System.out
        System.setOut(PrintStream(said))
        try {
            runBlocking { main(emptyArray()) }
        } finally {
            System.setOut(console)
        }
        assertEquals("invoice: 30 seconds", said.toString().trim())
    }

    /** Bills, and is killed at this place; gives whether there was so much to do. */
    private suspend fun killedAt(
        place: Int,
        pending: Counter,
    ): Boolean =
        // What was not committed is gone with the connection, as with the process.
        database(place).use { database ->
            try {
                bill(pending, SESSION, Invoices(Executioner(place).mortal(database)))
                false
            } catch (_: Killed) {
                true
            }
        }

    private fun database(place: Int): Connection =
        DriverManager.getConnection("jdbc:sqlite:${folder.resolve("$place.db")}")

    /** The biller's end, which it cannot catch as an exception. */
    private class Killed : Error()

    /** Kills at one of the calls to the database: just before it or, if the number is odd, just after it. */
    private class Executioner(private var left: Int) {
        fun mortal(connection: Connection): Connection = mortal(Connection::class.java, connection)

        private fun <T : Any> mortal(
            type: Class<T>,
            target: T,
        ): T {
            val handler = { _: Any, method: java.lang.reflect.Method, arguments: Array<Any?>? ->
                step()
                val result =
                    try {
                        method.invoke(target, *arguments.orEmpty())
                    } catch (failure: InvocationTargetException) {
                        throw failure.targetException
                    }
                step()
                if (result is PreparedStatement) mortal(PreparedStatement::class.java, result) else result
            }
            return type.cast(Proxy.newProxyInstance(type.classLoader, arrayOf(type), handler))
        }

        private fun step() {
            left -= 1
            if (left < 0) throw Killed()
        }
    }

    private companion object {
        const val SESSION = "42"
        const val KEY = "session:42:billableSecondsPending"
    }
}
