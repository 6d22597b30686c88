/**
 * Billing in two steps: a biller may die at any point and be started again, and each second is on one invoice.
 *
 * The order is what does it: the claim's id is in the database before there is a claim, and the invoice is there before the
 * claim is committed. Two billers of one session at once do each other no harm.
 *
 * Argument: a URL; `memory://` if none is given.
 */
package claims

import dev.tallylock.ClaimState
import dev.tallylock.ConflictException
import dev.tallylock.Counter
import dev.tallylock.Tallylock
import java.sql.Connection
import java.sql.DriverManager
import java.sql.PreparedStatement
import java.util.UUID
import kotlin.time.Duration.Companion.minutes

/** For SQLite and PostgreSQL. */
private val SCHEMA =
    listOf(
        """
        CREATE TABLE IF NOT EXISTS billing_runs (
            session TEXT PRIMARY KEY,
            claim TEXT NOT NULL UNIQUE
        )
        """,
        """
        CREATE TABLE IF NOT EXISTS claimed_invoices (
            claim TEXT PRIMARY KEY,
            session TEXT NOT NULL,
            seconds BIGINT NOT NULL
        )
        """,
    )

/** The invoices, and the run that each session's billing is in. It is one biller's at a time: a connection is. */
class Invoices(
    private val database: Connection,
) {
    init {
        database.autoCommit = false
        transaction { SCHEMA.forEach { execute(it) } }
    }

    /** The claim id of the run that this session is in, of a new one if it is in none. */
    fun begin(session: String): String {
        while (true) {
            val found =
                transaction {
                    execute(
                        "INSERT INTO billing_runs (session, claim) VALUES (?, ?) ON CONFLICT (session) DO NOTHING",
                        session,
                        UUID.randomUUID().toString(),
                    )
                    find("SELECT claim FROM billing_runs WHERE session = ?", session)
                }
            // Another biller may end the run just before it is read.
            if (found != null) return found
        }
    }

    /** What is invoiced for a claim; `null` if there is no invoice. */
    fun seconds(claim: String): Long? = transaction { find("SELECT seconds FROM claimed_invoices WHERE claim = ?", claim) }?.toLong()

    /** Writes the invoice for a claim, unless it is written. */
    fun write(
        claim: String,
        session: String,
        seconds: Long,
    ): Unit =
        transaction {
            execute(
                "INSERT INTO claimed_invoices (claim, session, seconds) VALUES (?, ?, ?) ON CONFLICT (claim) DO NOTHING",
                claim,
                session,
                seconds,
            )
        }

    /** Ends a run: the session's next one has another claim. */
    fun end(claim: String): Unit = transaction { execute("DELETE FROM billing_runs WHERE claim = ?", claim) }

    /** All seconds that were invoiced for a session. */
    fun total(session: String): Long =
        transaction { find("SELECT SUM(seconds) FROM claimed_invoices WHERE session = ?", session) }?.toLong() ?: 0

    private fun <T> transaction(body: () -> T): T {
        val result =
            try {
                body()
            } catch (failure: Exception) {
                database.rollback()
                throw failure
            }
        database.commit()
        return result
    }

    private fun execute(
        statement: String,
        vararg parameters: Any,
    ) {
        prepare(statement, parameters).use { it.executeUpdate() }
    }

    /** The first column of the first row; `null` if there is none, or nothing in it. */
    private fun find(
        statement: String,
        vararg parameters: Any,
    ): String? =
        prepare(statement, parameters).use { prepared ->
            prepared.executeQuery().use { rows -> if (rows.next()) rows.getString(1) else null }
        }

    private fun prepare(
        statement: String,
        parameters: Array<out Any>,
    ): PreparedStatement =
        database.prepareStatement(statement).apply {
            parameters.forEachIndexed { index, parameter -> setObject(index + 1, parameter) }
        }
}

/** Bills what is pending, or ends the run in which an earlier biller died; gives the seconds, `null` for nothing. */
suspend fun bill(
    pending: Counter,
    session: String,
    invoices: Invoices,
): Long? {
    val claim = invoices.begin(session)
    val invoiced = invoices.seconds(claim)
    if (invoiced != null) {
        // The biller died after the invoice. A claim that was committed over a day ago is forgotten: that is a conflict.
        try {
            pending.commit(claim, invoiced)
        } catch (_: ConflictException) {
        }
        invoices.end(claim)
        return invoiced
    }
    // Nothing to bill: the id stays for the next time, when a copy of this claim that comes late is found again.
    val claimed = pending.claim(claim) ?: return null
    if (claimed.state == ClaimState.Aborted) {
        // By somebody's hand: the seconds are pending again.
        invoices.end(claim)
        return null
    }
    invoices.write(claim, session, claimed.amount)
    pending.commit(claim, claimed.amount)
    invoices.end(claim)
    return claimed.amount
}

suspend fun main(arguments: Array<String>) {
    Tallylock.connect(arguments.firstOrNull() ?: "memory://").use { client ->
        val pending = client.counter("session:42:billableSecondsPending", ttl = 15.minutes)
        pending.add(30, idempotencyKey = "evt-1")
        pending.add(30, idempotencyKey = "evt-1") // sent again by a service that saw no reply: counts once
        DriverManager.getConnection("jdbc:sqlite::memory:").use { database ->
            println("invoice: ${bill(pending, "42", Invoices(database))} seconds")
        }
    }
}
