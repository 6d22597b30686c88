package dev.tallylock

import dev.tallylock.testing.FaultProxy
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.toJavaDuration
import java.time.Duration as JavaDuration

/** Looks through more counters than a page has: how they stream, and where they stand. */
class ScanTest {
    @ParameterizedTest
    @EnumSource
    fun aFlowGoesOnFromItsCursor(kind: ServerKind) {
        val server = filledServer(kind)
        runBlocking {
            Tallylock.connect(server.url, PATIENT).use { client ->
                val scan = client.scan("session:*")
                assertNull(scan.cursor)
                val begun = scan.take(COUNTERS / 2).toList()
                val rest = client.scan("session:*", checkNotNull(scan.cursor)).toList()
                assertTrue(rest.size < COUNTERS, "it has begun anew")
                assertEquals(totals, (begun + rest).associate { it.key.decodeToString() to it.total })
                // Collected again, it begins again; at its end there is nothing to go on from.
                assertEquals(totals, scan.toList().associate { it.key.decodeToString() to it.total })
                assertNull(scan.cursor)
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    fun anIterationGoesOnFromItsCursor(kind: ServerKind) {
        val server = filledServer(kind)
        Tallylock.connectBlocking(server.url, PATIENT.toJavaDuration()).use { client ->
            val scan = client.scan("session:*")
            assertNull(scan.cursor)
            val begun = scan.take(COUNTERS / 2)
            val rest = client.scan("session:*", checkNotNull(scan.cursor)).toList()
            assertTrue(rest.size < COUNTERS, "it has begun anew")
            assertEquals(totals, (begun + rest).associate { it.key.decodeToString() to it.total })
            assertEquals(totals, scan.associate { it.key.decodeToString() to it.total })
            assertNull(scan.cursor)
        }
    }

    @Test
    fun noPageIsReadBeforeItIsNeeded() {
        val server = filledServer(ServerKind.Valkey)
        FaultProxy(server).use { proxy ->
            runBlocking {
                Tallylock.connect(proxy.url, PATIENT).use { client ->
                    client.scan("session:*").first()
                    assertEquals(1, proxy.scans())
                    client.blocking.scan("session:*").first()
                    assertEquals(2, proxy.scans())
                    client.blocking
                        .scan("session:*")
                        .stream()
                        .findFirst()
                    assertEquals(3, proxy.scans())
                    client.scan("session:*").toList()
                    assertTrue(proxy.scans() > 4, "${proxy.scans()} pages")
                }
            }
        }
    }

    @Test
    fun whatIsLeftToLiveIsTold() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                val memory = client.memory!!
                memory.put("session:1", "30", 1.minutes)
                memory.put("session:2", "-1", null)
                val found = client.scan("session:*").toList().associate { it.key.decodeToString() to it.remaining }
                assertEquals(mapOf("session:1" to 1.minutes, "session:2" to null), found)
                val soon = client.blocking.expiring("session:*", 30.seconds.toJavaDuration())
                assertEquals(listOf("session:2" to null), soon.map { it.key.decodeToString() to it.remaining })
                val later = client.blocking.expiring("session:1", 2.minutes.toJavaDuration())
                assertEquals(listOf(JavaDuration.ofMinutes(1)), later.map { it.remaining })
            }
        }

    @Test
    fun openClaimsAreToldWithWhatIsLeftOfThem() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                val counter = client.counter("session:42", 15.minutes)
                counter.add(3)
                counter.claim(byteArrayOf(-1))
                val claim = counter.claims().single()
                assertTrue(byteArrayOf(-1).contentEquals(claim.id))
                assertThrows(IllegalStateException::class.java) { claim.idText }
                assertEquals(3, claim.amount)
                assertEquals((7 * 24 * 60).minutes, claim.remaining)
                val blocking = client.blocking.counter("session:42", JavaDuration.ofMinutes(15))
                val same = blocking.claims().single()
                assertThrows(IllegalStateException::class.java) { same.idText }
                assertEquals(JavaDuration.ofDays(7), same.remaining)
            }
        }

    @Test
    fun wrongArgumentsAreRefused() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                assertRefused { client.scan("*", cursor = "none").toList() }
                assertRefused { client.blocking.scan("*", "none").toList() }
                assertRefused { client.expiring("*", (-1).seconds) }
                assertRefused { client.blocking.expiring("*", JavaDuration.ofNanos(-1)) }
            }
        }

    private fun filledServer(kind: ServerKind): TestServer {
        val server = TestServer.empty(kind)
        totals.forEach { (key, total) -> server.plant(key, "$total") }
        return server
    }

    private fun FaultProxy.scans(): Long = stats().requests["SCAN"] ?: 0

    private fun assertRefused(call: suspend () -> Any?) {
        val refused = assertThrows(InvalidArgumentException::class.java) { runBlocking { call() } }
        assertEquals(Applied.No, refused.applied)
    }

    private companion object {
        // A machine that is busy elsewhere may stall for seconds.
        val PATIENT = 1.minutes
        const val COUNTERS = 3_000
        val totals = (1..COUNTERS).associate { "session:$it" to it.toLong() }
    }
}
