package dev.tallylock

import dev.tallylock.testing.Face
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.util.logging.Handler
import java.util.logging.Level
import java.util.logging.LogRecord
import java.util.logging.Logger
import kotlin.time.Duration.Companion.seconds

/** What operators do to locks: what the cases, which every language runs, can't see. */
class OperatorTest {
    @ParameterizedTest
    @EnumSource
    fun aStealIsLoggedAndCounted(face: Face) =
        runBlocking {
            face.connect("memory://").use { client ->
                val lock = client.lock("invoice:42", 30.seconds)
                val lease = lock.acquire()
                val holder = checkNotNull(lock.inspect())
                val secret = holder.token.decodeToString().take(32)
                val records =
                    logged {
                        assertNull(lock.steal("another".encodeToByteArray(), "it hangs"))
                        assertEquals(0, client.stolen)
                        val fence = checkNotNull(lock.steal(holder.token, "it hangs\nfor hours"))
                        val next = client.lock("invoice:42", 30.seconds).acquire()
                        assertTrue(lease.fence < fence && fence < next.fence)
                    }
                assertEquals(1, client.stolen)
                val record = records.single()
                assertEquals(Level.WARNING, record.level)
                for (part in listOf("invoice:42", holder.label.orEmpty(), "it hangs")) {
                    assertTrue(part in record.message, record.message)
                }
                assertTrue(secret !in record.message && "\n" !in record.message, record.message)
            }
        }

    /** What the logger `dev.tallylock` is told meanwhile. */
    private suspend fun logged(body: suspend () -> Unit): List<LogRecord> {
        val records = mutableListOf<LogRecord>()
        val handler =
            object : Handler() {
                override fun publish(record: LogRecord) {
                    records += record
                }

                override fun flush() = Unit

                override fun close() = Unit
            }
        val logger = Logger.getLogger("dev.tallylock")
        logger.addHandler(handler)
        try {
            body()
        } finally {
            logger.removeHandler(handler)
        }
        return records
    }
}
