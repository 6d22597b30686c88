package dev.tallylock

import dev.tallylock.testing.FaultProxy
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import dev.tallylock.testing.eventually
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.math.BigInteger
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicReference
import java.util.logging.Handler
import java.util.logging.LogRecord
import java.util.logging.Logger
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.toJavaDuration

/** How a sweeper that runs for long stops, is cancelled, is interrupted, and goes on. */
class SweeperRunTest {
    @ParameterizedTest
    @EnumSource
    fun oneThatIsToldToStopFinishesWhatIsInItsHand(kind: ServerKind) =
        onServer(kind) { client, server ->
            val stop = Job()
            val reports = mutableListOf<SweepReport>()
            client.sweeper().run(1.hours, stop, { reports += it }) {
                stop.complete()
                yield()
            }
            val report = reports.single()
            assertEquals(listOf(1L, 1L, 0L), listOf(report.offered, report.committed, report.leftOpen))
            assertNull(server.bystander.get(LOCK))

            val latch = CountDownLatch(1)
            client.blockingSweeper().run(1.hours.toJavaDuration(), latch, { latch.countDown() }, { reports += it })
            assertEquals(listOf(1L, 1L, 0L), reports.last().run { listOf(offered, committed, leftOpen) })
            assertNull(server.bystander.get(LOCK))
        }

    @ParameterizedTest
    @EnumSource
    fun oneThatIsCancelledInItsCallbackLeavesTheClaimOpenAndTheLockFree(kind: ServerKind) =
        onServer(kind) { client, server ->
            val billing = CompletableDeferred<Unit>()
            val running =
                launch {
                    client.sweeper().run(1.hours) {
                        billing.complete(Unit)
                        awaitCancellation()
                    }
                }
            billing.await()
            running.cancelAndJoin()
            assertNull(server.bystander.get(LOCK))
            assertResumes(client)
        }

    @ParameterizedTest
    @EnumSource
    fun oneThatIsInterruptedInItsCallbackLeavesTheClaimOpenAndTheLockFree(kind: ServerKind) =
        onServer(kind) { client, server ->
            val billing = CountDownLatch(1)
            val thrown = AtomicReference<Throwable>()
            val running =
                Thread {
                    try {
                        client.blockingSweeper().run(1.hours.toJavaDuration(), CountDownLatch(1), {
                            billing.countDown()
                            CountDownLatch(1).await()
                        })
                    } catch (failure: Throwable) {
                        thrown.set(failure)
                    }
                }
            running.start()
            billing.await()
            running.interrupt()
            running.join()
            assertTrue(thrown.get() is InterruptedException)
            assertNull(server.bystander.get(LOCK))
            assertResumes(client)
        }

    @ParameterizedTest
    @EnumSource
    fun anErrorInTheCallbackIsThrownAndLeavesTheClaimOpenAndTheLockFree(kind: ServerKind) =
        onServer(kind) { client, server ->
            assertThrows(StackOverflowError::class.java) {
                client.blockingSweeper().sweep { throw StackOverflowError() }
            }
            assertNull(server.bystander.get(LOCK))
            assertResumes(client)
        }

    @ParameterizedTest
    @EnumSource
    fun oneThatWaitsForTheLockCanBeCancelled(kind: ServerKind) =
        onServer(kind) { client, server ->
            val lease = client.lock(LOCK, 1.minutes).acquire()
            val patient = client.sweeper(PATTERN, TTL, LOCK, 1.minutes, 1.hours, wait = 1.hours)
            val waiting = launch { patient.sweep {} }
            yield()
            waiting.cancelAndJoin()
            lease.release()
            eventually { server.bystander.get(LOCK) == null }
            assertTrue(client.sweeper().sweep {}.isClean)
        }

    @Test
    fun aTimeoutOfItsOwnIsTheCallbacksFailure() =
        onServer(ServerKind.Valkey) { client, _ ->
            val report = client.sweeper().sweep { withTimeout(1.milliseconds) { awaitCancellation() } }
            assertEquals(listOf(2L, 0L, 2L), listOf(report.offered, report.committed, report.leftOpen))
            assertEquals(2, report.failures.size)
        }

    @ParameterizedTest
    @EnumSource
    fun itGoesOnWhereAnotherIsAtWorkOrTheServerIsAway(kind: ServerKind) =
        onServer(kind) { bystander, server ->
            FaultProxy(server).use { proxy ->
                Tallylock.connect(proxy.url, 2.seconds).use { client ->
                    val lease = bystander.lock(LOCK, 1.hours).acquire()
                    proxy.refuse()
                    proxy.cut()
                    val stop = Job()
                    val reports = mutableListOf<SweepReport>()
                    val told: suspend (SweepReport) -> Unit = { report ->
                        reports += report
                        if (report.error == null) {
                            stop.complete()
                        } else {
                            proxy.accept()
                            lease.release()
                        }
                    }
                    client.sweeper().run(1.milliseconds, stop, told) {}
                    assertTrue(reports.first().error is UnavailableException, "${reports.first()}")
                    assertFalse(reports.first().isClean)
                    assertEquals(BigInteger.valueOf(35), reports.last().committedUnits)
                }
            }
        }

    @Test
    fun whatFailsIsLoggedUnlessSomebodyTakesTheReports() =
        onServer(ServerKind.Valkey) { client, server ->
            server.plant("session:text:pending", "x")
            val records = mutableListOf<LogRecord>()
            val handler =
                object : Handler() {
                    override fun publish(record: LogRecord) {
                        records += record
                    }

                    override fun flush() = Unit

                    override fun close() = Unit
                }
            val logger = Logger.getLogger("dev.tallylock.sweeper")
            logger.useParentHandlers = false
            logger.addHandler(handler)
            val stop = Job()
            client.sweeper().run(1.hours, stop) {
                stop.complete()
                throw IOException("the database is away")
            }
            logger.removeHandler(handler)
            assertTrue(records.any { it.thrown?.message == "the database is away" })
        }

    @Test
    fun aClosedClientEndsTheRunning() {
        val client = Tallylock.connectBlocking("memory://")
        val sweeper = client.sweeper(PATTERN, TTL.toJavaDuration(), LOCK, TTL.toJavaDuration(), null, 1)
        client.close()
        assertThrows(ClosedException::class.java) {
            sweeper.run(1.hours.toJavaDuration(), CountDownLatch(1), {})
        }
    }

    private suspend fun assertResumes(client: Client) {
        val report = client.sweeper().sweep {}
        assertEquals(1, report.resumed)
        assertEquals(BigInteger.valueOf(35), report.committedUnits)
    }

    private fun onServer(
        kind: ServerKind,
        test: suspend kotlinx.coroutines.CoroutineScope.(client: Client, server: TestServer) -> Unit,
    ) = runBlocking(Dispatchers.Default) {
        val server = TestServer.empty(kind)
        Tallylock.connect(server.url).use { client ->
            client.counter("session:0:pending", TTL).add(30)
            client.counter("session:1:pending", TTL).add(5)
            test(client, server)
        }
    }

    private fun Client.sweeper() = sweeper(PATTERN, TTL, LOCK, 30.seconds, within = 1.hours)

    private fun Client.blockingSweeper() =
        blocking.sweeper(
            PATTERN,
            TTL.toJavaDuration(),
            LOCK,
            30.seconds.toJavaDuration(),
            1.hours.toJavaDuration(),
        )

    private companion object {
        const val PATTERN = "session:*:pending"
        const val LOCK = "sweeper"
        val TTL = 15.minutes
    }
}
