package dev.tallylock

import dev.tallylock.testing.BlockingFace
import dev.tallylock.testing.Face
import dev.tallylock.testing.FaceClient
import dev.tallylock.testing.FaultProxy
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.Setup
import dev.tallylock.testing.SuspendingFace
import dev.tallylock.testing.TestServer
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import org.junit.jupiter.params.provider.MethodSource
import java.io.IOException
import java.math.BigInteger
import java.util.concurrent.ConcurrentHashMap
import kotlin.time.Duration
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.toJavaDuration

/** What a sweeper bills, what its callback says, and what becomes of what fails. */
class SweeperTest {
    @ParameterizedTest
    @MethodSource(SETUPS)
    fun whatIsDueIsBilledAndReported(setup: Setup) =
        onServer(setup) { client, server ->
            client.fill(30, 5, 0)
            val invoices = Invoices()
            val first = client.sweep(within = null, atLeast = 10, bill = invoices::bill)
            assertEquals(listOf(1L, 1L, 0L), listOf(first.offered, first.committed, first.resumed))
            assertEquals(BigInteger.valueOf(30), first.committedUnits)
            assertTrue(first.isClean)
            client.sweep(bill = invoices::bill)
            assertEquals(35, invoices.total)
            assertEquals(listOf(0L, 0L, 0L), List(3) { client.session(it).read() })
            assertNull(server.bystander.get(LOCK))
            assertTrue(server.bystander.keys("*").all { server.bystander.pttl(it) > 0 })
        }

    @ParameterizedTest
    @EnumSource
    fun sumsOfManyFullCountersAreExact(face: Face) =
        inMemory(face) { client ->
            client.fill(Long.MAX_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE)
            val report = client.sweep { assertTrue(it.keyText.startsWith("session:")) }
            assertEquals(
                BigInteger.valueOf(Long.MAX_VALUE).multiply(BigInteger.TWO) - BigInteger.ONE,
                report.committedUnits,
            )
        }

    @ParameterizedTest
    @EnumSource
    fun whatIsRefusedGoesBackWithATtl(face: Face) =
        inMemory(face) { client ->
            client.fill(30)
            val report =
                client.sweep { claim ->
                    client.memory!!.remove(claim.keyText)
                    throw RefusedException()
                }
            assertEquals(listOf(1L, 1L, 0L), listOf(report.offered, report.aborted, report.leftOpen))
            assertEquals(BigInteger.valueOf(30), report.abortedUnits)
            assertTrue(report.isClean)
            assertEquals(30, client.session(0).read())
            assertTrue(client.memory!!.keys().all { it.ttl != null })
        }

    @ParameterizedTest
    @EnumSource
    fun anExceptionLeavesTheClaimToTheNextPassAndStopsNoOther(face: Face) =
        inMemory(face) { client ->
            client.fill(1, 2, 3)
            val invoices = Invoices()
            val away = IOException("the database is away")
            val first = client.sweep { if (it.amount == 2L) throw away else invoices.bill(it) }
            assertEquals(listOf(3L, 2L, 1L), listOf(first.offered, first.committed, first.leftOpen))
            val failure = first.failures.single()
            assertSame(away, failure.cause)
            assertEquals("session:1:pending", failure.keyText)
            client.memory!!.advance(2.days)
            val resumed = mutableListOf<String>()
            val second =
                client.sweep {
                    resumed += it.claimId
                    invoices.bill(it)
                }
            assertEquals(listOf(failure.claimId), resumed)
            assertEquals(1, second.resumed)
            assertEquals(6, invoices.total)
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun whatIsNoCounterIsReportedAndStopsNothing(setup: Setup) =
        onServer(setup) { client, server ->
            client.fill(30)
            server.bystander.rpush("session:list:pending", "x")
            server.plant("session:text:pending", "x")
            val invoices = Invoices()
            val report = client.sweep(bill = invoices::bill)
            assertEquals(30, invoices.total)
            assertEquals(2, report.unusable)
            val found = report.failures.associate { it.keyText to it.cause.javaClass }
            val expected =
                mapOf(
                    "session:list:pending" to WrongTypeException::class.java,
                    "session:text:pending" to NotAnIntegerException::class.java,
                )
            assertEquals(expected, found)
            assertTrue(report.failures.all { it.claimId == null })
        }

    @ParameterizedTest
    @EnumSource
    fun anotherSweeperIsBusy(face: Face) =
        inMemory(face) { client ->
            val lease = client.lock(LOCK, 30.seconds).acquire()
            assertThrows(BusyException::class.java) { runBlocking { client.sweep {} } }
            lease.release()
            assertTrue(client.sweep {}.isClean)
        }

    @ParameterizedTest
    @EnumSource
    fun aPassThatLosesItsLockCommitsWhatWasBilledAndStops(face: Face) =
        inMemory(face) { client ->
            client.fill(30, 5)
            val invoices = Invoices()
            val report =
                client.sweep {
                    invoices.bill(it)
                    // A pause longer than the lock lasts.
                    client.memory!!.advance(LOCK_TTL * 2)
                    client.memory!!.put(LOCK.encodeToByteArray(), "another's".encodeToByteArray(), 1.hours)
                }
            assertTrue(report.error is LostException, report.toString())
            assertEquals(listOf(1L, 1L), listOf(report.offered, report.committed))
            client.memory!!.remove(LOCK)
            client.sweep(bill = invoices::bill)
            assertEquals(35, invoices.total)
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun eachReplyLostOnceLosesAndDoublesNothing(setup: Setup) =
        onServer(setup) { bystander, server ->
            FaultProxy(server).use { proxy ->
                setup.face.connect(proxy.url).use { client ->
                    client.sweep {}
                    var place = 0
                    do {
                        place += 1
                        server.bystander.flushAll()
                        bystander.fill(30, 5)
                        bystander.leaveOpen(0)
                        bystander.session(0).add(7)
                        val invoices = Invoices()
                        val lost = proxy.stats().lost
                        proxy.lose(place)
                        val report = client.sweep(bill = invoices::bill)
                        assertTrue(report.isClean, "reply $place lost: $report")
                        assertEquals(listOf(42L, 1L), listOf(invoices.total, report.resumed), "reply $place lost")
                        bystander.assertNothingIsOpen(2)
                        assertNull(server.bystander.get(LOCK))
                    } while (proxy.stats().lost > lost)
                    assertTrue(place > 11, "only $place requests")
                }
            }
        }

    /** To the server it is as if the process were killed: nothing more comes from it, not even the release. */
    @ParameterizedTest
    @EnumSource
    fun aSweeperThatIsCutOffAtAnyStepLosesAndDoublesNothing(face: Face) =
        onServer(Setup(face, ServerKind.Valkey)) { bystander, server ->
            var place = 0
            var wasCutOff = true
            while (wasCutOff) {
                place += 1
                server.bystander.flushAll()
                bystander.fill(30, 5)
                val invoices = Invoices()
                wasCutOff = cutOff(face, server, place, invoices)
                // The lock of the dead ends with its TTL.
                server.bystander.del(LOCK)
                bystander.session(0).add(7)
                val report = bystander.sweep(bill = invoices::bill)
                assertTrue(report.isClean, "cut off at $place: $report")
                assertEquals(42, invoices.total, "cut off at $place")
                bystander.assertNothingIsOpen(2)
            }
            assertTrue(place > 8, "only $place steps")
        }

    /** Sweeps, and is cut off after so many replies, of which the last is lost too; gives whether there were so many. */
    private suspend fun cutOff(
        face: Face,
        server: TestServer,
        place: Int,
        invoices: Invoices,
    ): Boolean =
        FaultProxy(server).use { proxy ->
            // Its connection for calls in the background is there, whichever face has it.
            Tallylock.connect(proxy.url, 1.seconds).use { connected ->
                val client = if (face == Face.Blocking) BlockingFace(connected.blocking) else SuspendingFace(connected)
                proxy.refuse()
                proxy.lose(place)
                coroutineScope {
                    val sweeping =
                        async(Dispatchers.IO) {
                            try {
                                client.sweep(bill = invoices::bill).error != null
                            } catch (_: TallylockException) {
                                true
                            }
                        }
                    while (sweeping.isActive && proxy.stats().lost == 0L) yield()
                    // The dead try nothing more.
                    client.close()
                    sweeping.await()
                }
            }
        }

    @ParameterizedTest
    @EnumSource
    fun whatItIsToldIsCheckedBeforeAnythingIsSent(face: Face) =
        inMemory(face) { client ->
            val calls =
                listOf<suspend () -> Any>(
                    { client.sweep(within = null) {} },
                    { client.sweep(atLeast = 0) {} },
                    { client.sweep(within = (-1).seconds) {} },
                    { client.sweep(ttl = Duration.ZERO) {} },
                    { client.sweep(lock = "") {} },
                    { client.sweep(lock = "x".repeat(474)) {} },
                    { client.sweep(lock = "a\ud800") {} },
                    { client.sweep(lockTtl = 2.milliseconds) {} },
                    { client.sweep(wait = (-1).seconds) {} },
                )
            for (call in calls) {
                assertThrows(InvalidArgumentException::class.java) { runBlocking { call() } }
            }
        }

    /** Invoices, one for each claim however often it is billed. */
    private class Invoices {
        private val units = ConcurrentHashMap<String, Long>()

        fun bill(claim: ClaimToBill) {
            units.putIfAbsent(claim.claimId, claim.amount)
        }

        val total: Long
            get() = units.values.sum()
    }

    private fun onServer(
        setup: Setup,
        test: suspend (client: FaceClient, server: TestServer) -> Unit,
    ) = runBlocking {
        val server = TestServer.empty(setup.kind)
        setup.face.connect(server.url).use { test(it, server) }
    }

    private fun inMemory(
        face: Face,
        test: suspend (client: FaceClient) -> Unit,
    ) = runBlocking { face.connect("memory://").use { test(it) } }

    private fun FaceClient.session(number: Int) = counter("session:$number:pending", 15.minutes)

    private suspend fun FaceClient.fill(vararg amounts: Long) =
        amounts.forEachIndexed { number, amount -> session(number).add(amount) }

    /** Leaves a claim as a sweeper that has died does. */
    private suspend fun FaceClient.leaveOpen(number: Int) = session(number).claim("sweep.$LOCK.${"a".repeat(32)}")

    private suspend fun FaceClient.assertNothingIsOpen(sessions: Int) =
        repeat(sessions) {
            assertEquals(0, session(it).read())
            assertEquals(emptyList<Any>(), session(it).claims())
        }

    private suspend fun FaceClient.sweep(
        within: Duration? = 1.hours,
        atLeast: Long? = null,
        ttl: Duration = 15.minutes,
        lock: String = LOCK,
        lockTtl: Duration = LOCK_TTL,
        wait: Duration = Duration.ZERO,
        bill: (ClaimToBill) -> Unit,
    ): SweepReport =
        when (this) {
            is SuspendingFace -> client.sweeper(PATTERN, ttl, lock, lockTtl, within, atLeast, wait).sweep { bill(it) }
            is BlockingFace ->
                client
                    .sweeper(
                        PATTERN,
                        ttl.toJavaDuration(),
                        lock,
                        lockTtl.toJavaDuration(),
                        within?.toJavaDuration(),
                        atLeast,
                        wait.toJavaDuration(),
                    ).sweep { bill(it) }
            else -> error("there is no third face")
        }

    private companion object {
        const val SETUPS = "dev.tallylock.testing.Setup#all"
        const val PATTERN = "session:*:pending"
        const val LOCK = "sweeper"
        val LOCK_TTL = 30.seconds
    }
}
