package dev.tallylock

import dev.tallylock.testing.Face
import dev.tallylock.testing.FaceClient
import dev.tallylock.testing.FaultProxy
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.Setup
import dev.tallylock.testing.TestServer
import dev.tallylock.testing.eventually
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertInstanceOf
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import org.junit.jupiter.params.provider.MethodSource
import java.nio.file.Path
import java.util.concurrent.atomic.AtomicReference
import kotlin.io.path.writeText
import kotlin.time.Duration
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.nanoseconds
import kotlin.time.Duration.Companion.seconds

/** Meters: what is added in memory is counted once, whoever is away, cancelled, interrupted or forgotten. */
class MeterTest {
    @ParameterizedTest
    @MethodSource("dev.tallylock.testing.Setup#all")
    fun whatIsAddedIsFlushed(setup: Setup) {
        val server = TestServer.empty(setup.kind)
        val other = byteArrayOf(0, -1, 'x'.code.toByte())
        val long = "long:" + "x".repeat(1000)
        withClient(setup.face, server.url) { client ->
            client.meter(15.minutes).use { meter ->
                meter.add(KEY, 30)
                meter.add(long, 7)
                meter.add(KEY, -5)
                meter.add(other, Long.MAX_VALUE)
                assertNull(server.bystander.get(KEY))
                assertEquals(Flushed(3, Long.MAX_VALUE, 0, 0), meter.flush())
                assertEquals(Flushed(0, 0, 0, 0), meter.flush())
                assertNull(meter.trouble)
                meter.add(KEY, 1)
            }
            assertEquals("26", server.bystander.get(KEY))
            assertEquals("7", server.bystander.get(long))
            assertEquals("${Long.MAX_VALUE}", String(server.bystander.get(other)))
            assertTrue(server.bystander.ttl(KEY) in 1..15.minutes.inWholeSeconds)
        }
    }

    @ParameterizedTest
    @EnumSource
    fun whatGathersIsFlushedByItself(face: Face) {
        val server = TestServer.empty(ServerKind.Valkey)
        withClient(face, server.url) { client ->
            client.meter(15.minutes, interval = 1.milliseconds).add("by time", 1)
            client.meter(15.minutes, maxCounters = 1).add("by counters", 2)
            eventually { server.bystander.mget("by time", "by counters") == listOf("1", "2") }
        }
    }

    @ParameterizedTest
    @MethodSource("dev.tallylock.testing.Setup#all")
    fun whatTheServerRefusesIsHandedOut(setup: Setup) {
        val server = TestServer.empty(setup.kind)
        server.bystander.rpush("list", "x")
        withClient(setup.face, server.url) { client ->
            val meter = client.meter(15.minutes)
            meter.add("a", 7)
            meter.add("list", 7)
            assertEquals(Flushed(1, 7, 0, 1), meter.flush())
            assertThrows(WrongTypeException::class.java) { runBlocking { meter.close() } }
            val refused = meter.takeRefused().single()
            assertEquals("list" to 7L, refused.keyText to refused.amount)
            assertInstanceOf(WrongTypeException::class.java, refused.exception)
            assertTrue(meter.takeRefused().isEmpty())
            meter.close()
            assertThrows(ClosedException::class.java) { meter.add("a", 1) }
            assertThrows(ClosedException::class.java) { runBlocking { meter.flush() } }
        }
    }

    @ParameterizedTest
    @MethodSource("dev.tallylock.testing.Setup#all")
    fun lostRepliesAndAServerThatIsAwayCountOnce(setup: Setup) {
        val server = TestServer.empty(setup.kind)
        FaultProxy(server).use { proxy ->
            withClient(setup.face, proxy.url, timeout = 1500.milliseconds) { client ->
                val meter = client.meter(15.minutes, maxCounters = 3)
                meter.add("warm", 1)
                meter.flush()
                meter.add(KEY, 30)
                proxy.hold()
                val unknown = assertThrows(OutcomeUnknownException::class.java) { runBlocking { meter.flush() } }
                assertTrue("30 units over 1 counters wait" in unknown.message!!, unknown.message)
                assertEquals("outcome_unknown", meter.trouble?.code)
                assertEquals("30", server.bystander.get(KEY))
                proxy.refuse()
                proxy.cut()
                proxy.go()
                meter.add(KEY, 12)
                assertThrows(UnavailableException::class.java) { runBlocking { meter.flush() } }
                proxy.accept()
                assertEquals(Flushed(2, 42, 0, 0), meter.flush())
                assertEquals("42", server.bystander.get(KEY))
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    fun whatABlockThrowsComesFirst(face: Face) {
        val server = TestServer.empty(ServerKind.Valkey)
        withClient(face, server.url) { client ->
            val meter = client.meter(15.minutes)
            val raised = IllegalStateException("the block's own")
            val caught =
                assertThrows(IllegalStateException::class.java) {
                    runBlocking {
                        meter.use {
                            meter.add(KEY, 30)
                            client.close()
                            throw raised
                        }
                    }
                }
            assertEquals(raised, caught)
            val suppressed = assertInstanceOf(ClosedException::class.java, caught.suppressed.single())
            assertTrue("30 units over 1 counters are not on the server" in suppressed.message!!)
        }
    }

    @ParameterizedTest
    @EnumSource
    fun aJournalServesOneMeterAtATime(
        face: Face,
        @TempDir folder: Path,
    ) {
        val server = TestServer.empty(ServerKind.Valkey)
        val journal = folder.resolve("journal")
        withClient(face, server.url) { client ->
            val meter = client.meter(15.minutes, journal = journal)
            assertThrows(BusyException::class.java) { runBlocking { client.meter(15.minutes, journal = journal) } }
            meter.add(KEY, 30)
            client.close()
            meter.close()
        }
        assertNull(server.bystander.get(KEY))
        withClient(face, server.url) { client ->
            client.meter(15.minutes, journal = journal).close()
            assertEquals("30", server.bystander.get(KEY))
            val damaged = journal.resolve("0".repeat(32) + ".segment").apply { writeText("nonsense") }
            val refused =
                assertThrows(InvalidArgumentException::class.java) {
                    runBlocking { client.meter(15.minutes, journal = journal) }
                }
            assertTrue("$damaged" in refused.message!!, refused.message)
        }
    }

    @ParameterizedTest
    @EnumSource
    fun mistakesAreRefused(face: Face) =
        withClient(face, "memory://") { client ->
            assertRefused { client.meter(Duration.ZERO) }
            assertRefused { client.meter(15.minutes, interval = 1.nanoseconds) }
            assertRefused { client.meter(15.minutes, interval = Duration.ZERO) }
            assertRefused { client.meter(15.minutes, maxCounters = 0) }
            assertRefused { client.meter(15.minutes, maxCounters = -1) }
            assertRefused { client.meter(15.minutes, remember = 1.seconds) }
            assertRefused { client.meter(15.minutes, remember = 3651.days) }
            client.meter(15.minutes).use { meter ->
                assertRefused { meter.add("", 1) }
                assertRefused { meter.add(ByteArray(0), 1) }
                assertRefused { meter.add("{}", 1) }
                assertRefused { meter.add("\uD800", 1) }
                meter.add(KEY, Long.MIN_VALUE)
                assertThrows(CounterOverflowException::class.java) { meter.add(KEY, -1) }
            }
            assertEquals(
                "${Long.MIN_VALUE}",
                client.memory!!
                    .keys()
                    .single { it.key.decodeToString() == KEY }
                    .text(),
            )
        }

    @Test
    fun aFlushThatIsCancelledGoesOn() {
        val server = TestServer.empty(ServerKind.Valkey)
        FaultProxy(server).use { proxy ->
            runBlocking(Dispatchers.Default) {
                val client = Tallylock.connect(proxy.url, timeout = 1.minutes)
                client.meter(15.minutes, interval = 1.hours).use { meter ->
                    meter.add("warm", 1)
                    meter.flush()
                    meter.add(KEY, 30)
                    proxy.hold()
                    val flushing = async(start = CoroutineStart.UNDISPATCHED) { meter.flush() }
                    proxy.awaitHeld(1)
                    flushing.cancelAndJoin()
                    meter.add(KEY, 12)
                    proxy.go()
                    assertEquals(12, meter.flush().units)
                }
                client.close()
            }
        }
        assertEquals("42", server.bystander.get(KEY))
    }

    @Test
    fun aFlushThatIsInterruptedGoesOn() {
        val server = TestServer.empty(ServerKind.Valkey)
        FaultProxy(server).use { proxy ->
            val client = runBlocking { Tallylock.connect(proxy.url, timeout = 1.minutes) }
            val meter =
                client.blocking.meter(
                    java.time.Duration.ofMinutes(15),
                    interval = java.time.Duration.ofHours(1),
                )
            meter.add("warm", 1)
            meter.flush()
            meter.add(KEY, 30)
            proxy.hold()
            val thrown = AtomicReference<Throwable>()
            val flushing = Thread { thrown.set(runCatching { meter.flush() }.exceptionOrNull()) }
            flushing.start()
            proxy.awaitHeld(1)
            flushing.interrupt()
            flushing.join()
            assertInstanceOf(InterruptedException::class.java, thrown.get())
            meter.add(KEY, 12)
            proxy.go()
            assertEquals(12, meter.flush().units)
            meter.close()
            client.close()
        }
        assertEquals("42", server.bystander.get(KEY))
    }

    @Test
    fun aCloseThatIsInterruptedSaysWhatIsLost() {
        val server = TestServer.empty(ServerKind.Valkey)
        FaultProxy(server).use { proxy ->
            val client = runBlocking { Tallylock.connect(proxy.url, timeout = 5.seconds) }
            val meter =
                client.blocking.meter(
                    java.time.Duration.ofMinutes(15),
                    interval = java.time.Duration.ofHours(1),
                )
            meter.add("warm", 1)
            meter.flush()
            proxy.hold()
            meter.add(KEY, 30)
            val thrown = AtomicReference<Throwable>()
            val isInterrupted = AtomicReference<Boolean>()
            val closing =
                Thread {
                    thrown.set(runCatching { meter.close() }.exceptionOrNull())
                    isInterrupted.set(Thread.interrupted())
                }
            closing.start()
            proxy.awaitHeld(1)
            closing.interrupt()
            closing.join()
            val lost = assertInstanceOf(OutcomeUnknownException::class.java, thrown.get())
            assertTrue("30 units over 1 counters are not on the server" in lost.message!!, lost.message)
            assertEquals(true, isInterrupted.get())
            client.close()
        }
    }

    @ParameterizedTest
    @EnumSource
    fun aForgottenMeterLeavesItsJournalToTheNext(
        face: Face,
        @TempDir folder: Path,
    ) {
        val server = TestServer.empty(ServerKind.Valkey)
        withClient(face, server.url) { client ->
            forgetMeter(client, folder)
            eventually {
                System.gc()
                try {
                    runBlocking { client.meter(15.minutes, journal = folder).close() }
                    true
                } catch (_: BusyException) {
                    false
                }
            }
            assertEquals("30", server.bystander.get(KEY))
        }
    }

    /** No frame of the caller may hold the meter. */
    private fun forgetMeter(
        client: FaceClient,
        journal: Path,
    ) = runBlocking { client.meter(15.minutes, journal = journal).add(KEY, 30) }

    private fun withClient(
        face: Face,
        url: String,
        timeout: Duration? = 1.minutes,
        body: suspend (FaceClient) -> Unit,
    ) = runBlocking { face.connect(url, timeout).use { body(it) } }

    private fun dev.tallylock.testing.Found.text(): String = value!!.decodeToString()

    private fun assertRefused(call: suspend () -> Unit) {
        assertThrows(InvalidArgumentException::class.java) { runBlocking { call() } }
    }

    private companion object {
        const val KEY = "session:42:billableSecondsPending"
    }
}
