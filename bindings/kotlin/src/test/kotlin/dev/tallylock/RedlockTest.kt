package dev.tallylock

import dev.tallylock.testing.Acquiring
import dev.tallylock.testing.BlockingRedlock
import dev.tallylock.testing.CancelPoints
import dev.tallylock.testing.Face
import dev.tallylock.testing.SuspendingRedlock
import dev.tallylock.testing.TestServer
import dev.tallylock.testing.awaitFree
import dev.tallylock.testing.connectToAll
import dev.tallylock.testing.connections
import dev.tallylock.testing.eventually
import dev.tallylock.testing.holding
import dev.tallylock.testing.onFiveServers
import dev.tallylock.testing.reachAll
import dev.tallylock.testing.spin
import dev.tallylock.testing.urls
import dev.tallylock.testing.whileStopped
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.util.concurrent.atomic.AtomicReference
import kotlin.random.Random
import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.nanoseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.toJavaDuration

/** Locks on several servers: who decides, who is refused, and what is left. */
class RedlockTest {
    @Test
    fun theExampleOfTheGuideRuns() =
        onFiveServers { servers ->
            val urls = servers.urls
            Tallylock.connectRedlock(urls).use { redlock ->
                redlock.lock("invoice:42", ttl = 30.seconds).withLock(wait = 5.seconds) { lease ->
                    lease.ensure(2.seconds) // still ours for two seconds? else LostException
                    println("fence ${lease.fence}")
                }
            }
            servers.awaitFree(KEY)
        }

    @ParameterizedTest
    @EnumSource
    fun aQuorumDecidesWhileTwoServersHang(face: Face) =
        onFiveServers { servers ->
            val redlock = face.connectToAll(servers)
            val other = face.connectToAll(servers)
            val lock = redlock.lock(KEY, TTL)
            val fence =
                servers.take(2).whileStopped {
                    val lease = lock.acquire(PATIENCE)
                    assertTrue(lease.isValid)
                    assertEquals(3, servers.drop(2).holding(KEY))
                    val busy =
                        assertThrows(BusyException::class.java) { runBlocking { other.lock(KEY, TTL).acquire() } }
                    assertEquals(KEY, busy.key)
                    assertSays("held by another on 3", busy)
                    lease.extend(TTL * 2)
                    assertTrue(lease.remaining > TTL)
                    lease.verify(TTL)
                    lease.release()
                    lease.fence
                }
            servers.awaitFree(KEY)
            lock.withLock(PATIENCE) { assertTrue(it.fence > fence) }
            servers.awaitFree(KEY)
        }

    @ParameterizedTest
    @EnumSource
    fun twoServersAreDownAndAThirdIsOneTooMany(face: Face) =
        onFiveServers { servers ->
            val lock = face.connectToAll(servers).lock(KEY, TTL)
            servers.take(2).forEach(TestServer::close)
            lock.withLock(PATIENCE) { lease ->
                assertEquals(3, servers.drop(2).holding(KEY))
                lease.extend()
                lease.verify(TTL / 2)
            }
            servers.drop(2).awaitFree(KEY)
            // Who comes now does not wait for them either.
            val late = face.connectRedlock(servers.urls, timeout = SHORT).lock(KEY, TTL)
            late.withLock(PATIENCE) { it.ensure(TTL / 2) }
            servers[2].close()
            val refused = assertThrows(TallylockException::class.java) { runBlocking { late.acquire() } }
            assertTrue(refused.code in listOf("unavailable", "timeout"), refused.code)
            assertSays("unreachable 3 of 5 nodes", refused)
            servers.drop(3).awaitFree(KEY)
        }

    @ParameterizedTest
    @EnumSource
    fun withoutAQuorumTheServersAreCounted(face: Face) =
        onFiveServers { servers ->
            val lock = face.connectRedlock(servers.urls, timeout = SHORT).lock(KEY, TTL)
            lock.acquire(PATIENCE).release()
            servers.take(3).whileStopped {
                val refused = assertThrows(TallylockException::class.java) { runBlocking { lock.acquire() } }
                assertTrue(refused.code in listOf("unavailable", "timeout"), refused.code)
                assertEquals(Applied.No, refused.applied)
                assertSays("unreachable 3 of 5 nodes", refused)
                val unavailable =
                    assertThrows(UnavailableException::class.java) {
                        runBlocking { face.connectRedlock(servers.urls, timeout = SHORT) }
                    }
                assertSays("unreachable 3 of 5 nodes", unavailable)
            }
            servers.awaitFree(KEY)
        }

    @ParameterizedTest
    @EnumSource
    fun fencesGrowWhicheverServersGrantThem(face: Face) =
        onFiveServers { servers ->
            val lock = face.connectToAll(servers).lock(KEY, TTL)
            var last = 0L
            for (place in servers.indices) {
                val away = listOf(servers[place], servers[(place + 1) % servers.size])
                away.whileStopped { lock.withLock(PATIENCE) { last = assertLarger(it.fence, last) } }
                servers.awaitFree(KEY)
                // It has lost its fences: a minority has.
                servers[place].bystander.flushAll()
                lock.withLock(PATIENCE) { last = assertLarger(it.fence, last) }
                servers.awaitFree(KEY)
            }
        }

    private fun assertLarger(
        fence: Long,
        last: Long,
    ): Long {
        assertTrue(fence > last, "$fence is not above $last")
        return fence
    }

    @Test
    fun acquiresCancelledAtRandomPointsLeaveNoLockOnAnyServer() =
        onFiveServers { servers ->
            SuspendingRedlock(Tallylock.connectRedlock(servers.urls, timeout = 1.minutes)).use { face ->
                face.reachAll(servers)
                val lock = face.redlock.lock(KEY, 10.minutes)
                val points = CancelPoints(Random(SEED))
                repeat(ROUNDS) {
                    val acquiring = Acquiring(this, lock)
                    spin(points.next())
                    points.met(wasLate = acquiring.cancel())
                    servers.awaitFree(KEY)
                }
                points.assertSpread()
                lock.acquire(wait = PATIENCE).release()
            }
            servers.awaitFree(KEY)
        }

    @Test
    fun acquiresInterruptedAtRandomPointsLeaveNoLockOnAnyServer() =
        onFiveServers { servers ->
            val patience = 1.minutes.toJavaDuration()
            BlockingRedlock(Tallylock.connectRedlockBlocking(servers.urls, patience)).use { face ->
                face.reachAll(servers)
                val lock = face.redlock.lock(KEY, 10.minutes.toJavaDuration())
                val points = CancelPoints(Random(SEED))
                repeat(ROUNDS) {
                    val outcome = AtomicReference<Result<Unit>>()
                    val thread = Thread { outcome.set(runCatching { lock.acquire(JAVA_PATIENCE).release() }) }
                    thread.start()
                    spin(points.next())
                    thread.interrupt()
                    thread.join()
                    val failure = outcome.get().exceptionOrNull()
                    if (failure != null) assertEquals(InterruptedException::class, failure::class)
                    points.met(wasLate = failure == null)
                    servers.awaitFree(KEY)
                }
                points.assertSpread()
            }
        }

    @ParameterizedTest
    @EnumSource
    fun aWaitingAcquireEndsAsClosedAndLeavesNoLock(face: Face) =
        onFiveServers { servers ->
            servers.take(3).forEach { it.plant(KEY, "of another library") }
            val redlock = face.connectToAll(servers)
            val waiting = async { runCatching { redlock.lock(KEY, TTL).acquire(wait = 10.minutes) } }
            eventually { servers.drop(3).holding(FENCE) == 2 }
            redlock.close()
            redlock.close()
            assertThrows(ClosedException::class.java) { runBlocking { waiting.await().getOrThrow() } }
            assertThrows(ClosedException::class.java) { runBlocking { redlock.lock(KEY, TTL).acquire() } }
            servers.drop(3).awaitFree(KEY)
            assertEquals(3, servers.holding(KEY))
            eventually { servers.connections() == 0 }
        }

    @Test
    fun closingOneFaceClosesTheOther() =
        runBlocking {
            val redlock = Tallylock.connectRedlock(inMemory)
            acquired(redlock).release()
            redlock.blocking.close()
            val closed = assertThrows(ClosedException::class.java) { runBlocking { redlock.lock(KEY, TTL).acquire() } }
            assertEquals(Applied.No, closed.applied)
        }

    @Test
    fun connectingCanBeCancelled() =
        onFiveServers { servers ->
            servers.take(3).whileStopped {
                val connecting = launch { Tallylock.connectRedlock(servers.urls, timeout = 5.minutes) }
                eventually { servers.drop(3).connections() == 2 }
                connecting.cancelAndJoin()
                eventually { servers.drop(3).connections() == 0 }
            }
        }

    @ParameterizedTest
    @EnumSource
    fun whatIsAboutOneServerIsRefused(face: Face) =
        runBlocking<Unit> {
            face.connectRedlock(inMemory).use { redlock ->
                val lock = redlock.lock(KEY, TTL)
                lock.acquire()
                assertThrows(UnsupportedException::class.java) { runBlocking { lock.inspect() } }
                assertThrows(UnsupportedException::class.java) {
                    runBlocking { lock.steal("token".toByteArray(), "it hangs") }
                }
                assertThrows(InvalidArgumentException::class.java) { redlock.lock(KEY, Duration.ZERO) }
                assertThrows(InvalidArgumentException::class.java) { redlock.lock("", TTL) }
            }
        }

    @ParameterizedTest
    @EnumSource
    fun badArgumentsAreRefusedBeforeAnythingIsSent(face: Face) =
        onFiveServers { servers ->
            val received = servers.map(::connectionsReceived)
            val (first, second, third) = servers.urls
            val notInMemory = listOf("memory://", second, third)
            for ((urls, words) in listOf(
                emptyList<String>() to "not 0",
                listOf(first) to "not 1",
                servers.urls.take(4) to "not 4",
                List(101) { "redis://server-$it" } to "not 101",
                listOf(first, second, "$first/1") to "URLs 1 and 3",
                listOf("redis://:sesame@a", "redis://b", "rediss://:sesame@a/1") to "URLs 1 and 3",
                notInMemory to "clock",
                listOf(first, second, "http://:sesame@a") to "URL",
                listOf(first, second, "redis://:sesame\ud800@a") to "surrogate",
            )) {
                val refused = assertRefused { face.connectRedlock(urls) }
                assertSays(words, refused)
                assertFalse("sesame" in refused.message.orEmpty(), refused.message)
            }
            for (bad in listOf(Duration.ZERO, (-1).seconds, (-1).nanoseconds, 1.microseconds, Duration.INFINITE)) {
                assertRefused { face.connectRedlock(servers.urls, timeout = bad) }
                assertRefused { face.connectRedlock(servers.urls, nodeTimeout = bad) }
            }
            for (label in listOf("", "two words", "a\ud800", "x".repeat(65))) {
                assertRefused { face.connectRedlock(servers.urls, owner = Owner.Label(label)) }
            }
            assertEquals(received, servers.map(::connectionsReceived))
        }

    @Test
    fun theListMayChangeOnceItWasGiven() =
        runBlocking(Dispatchers.Default) {
            val urls = inMemory.toMutableList()
            val redlock = Tallylock.connectRedlock(urls)
            urls.clear()
            acquired(redlock).release()
            redlock.lock(KEY, TTL).acquire().release()
        }

    private fun acquired(redlock: Redlock) = redlock.blocking.lock(KEY, TTL.toJavaDuration()).acquire()

    private fun assertRefused(call: suspend () -> Any): InvalidArgumentException {
        val refused = assertThrows(InvalidArgumentException::class.java) { runBlocking { call() } }
        assertEquals(Applied.No, refused.applied)
        return refused
    }

    private fun assertSays(
        words: String,
        exception: TallylockException,
    ) = assertTrue(words in exception.message.orEmpty(), exception.message)

    private fun connectionsReceived(server: TestServer): String =
        server.bystander
            .info("stats")
            .lines()
            .first { it.startsWith("total_connections_received:") }

    private companion object {
        val inMemory = List(3) { "memory://" }
        const val KEY = "invoice:42"
        const val FENCE = "invoice:42{invoice:42}:tlu1:fence"
        val TTL = 1.minutes
        val PATIENCE = 20.seconds
        val JAVA_PATIENCE: java.time.Duration = PATIENCE.toJavaDuration()

        // Long enough for a busy machine to ask those that answer, and short enough to be waited for.
        val SHORT = 3.seconds
        const val SEED = 20130131
        const val ROUNDS = 100
    }
}
