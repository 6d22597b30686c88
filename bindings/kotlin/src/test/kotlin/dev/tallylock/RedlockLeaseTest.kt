package dev.tallylock

import dev.tallylock.testing.Face
import dev.tallylock.testing.FaceLease
import dev.tallylock.testing.acquireOnAll
import dev.tallylock.testing.awaitFree
import dev.tallylock.testing.connectToAll
import dev.tallylock.testing.eventually
import dev.tallylock.testing.holding
import dev.tallylock.testing.onFiveServers
import dev.tallylock.testing.urls
import dev.tallylock.testing.whileStopped
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertInstanceOf
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.util.UUID
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

/** Leases on several servers: they renew themselves, and a quorum decides whether they are lost. */
class RedlockLeaseTest {
    @ParameterizedTest
    @EnumSource
    fun aLeaseOutlivesItsTtlWhileOneServerIsDownAndAnotherHangs(face: Face) =
        onFiveServers { servers ->
            val lease = face.connectToAll(servers).lock(KEY, TTL).acquire(PATIENCE)
            servers[4].close()
            servers.take(1).whileStopped {
                assertNull(withTimeoutOrNull(TTL * 2) { lease.awaitEnd() })
                lease.verify(TTL / 4)
                lease.release()
            }
            assertEquals(LeaseState.LetGo, lease.state)
            servers.take(4).awaitFree(KEY)
        }

    @ParameterizedTest
    @EnumSource
    fun aMinorityThatSaysNoEndsNothingAndAMajorityDoes(face: Face) =
        onFiveServers { servers ->
            val lock = face.connectToAll(servers).lock(KEY, LONG, Renewal.Every(50.milliseconds))
            val lease = lock.acquire(PATIENCE)
            servers.take(2).forEach { it.plant(KEY, "another") }
            lease.extend()
            lease.verify(LONG / 2)
            assertEquals(LeaseState.Held, lease.state)
            servers[2].plant(KEY, "another")
            assertLost(lease, "taken_over", "held by another on 3")
            assertEquals(listOf("another"), servers.take(3).map { it.bystander.get(KEY) }.distinct())
            servers.drop(3).awaitFree(KEY)
        }

    @ParameterizedTest
    @EnumSource
    fun aMajorityThatHasForgottenItEndsIt(face: Face) =
        onFiveServers { servers ->
            val lock = face.connectToAll(servers).lock(KEY, LONG, Renewal.Every(50.milliseconds))
            val lease = lock.acquire(PATIENCE)
            eventually { servers.holding(KEY) == servers.size }
            servers.take(3).forEach { it.bystander.del(KEY) }
            assertLost(lease, "expired", "gone from 3")
        }

    @ParameterizedTest
    @EnumSource
    fun aSilentMajorityIsToldAtTheDeadline(face: Face) =
        onFiveServers { servers ->
            val lease = face.connectToAll(servers).lock(KEY, TTL).acquire(PATIENCE)
            servers.take(3).whileStopped {
                val begun = TimeSource.Monotonic.markNow()
                val remaining = lease.remaining
                assertLost(lease, "unreachable", "unreachable 3 of 5 nodes")
                // The deadline is known to a millisecond. It may have been renewed just before they were silent.
                assertTrue(begun.elapsedNow() >= remaining - 2.milliseconds, "${begun.elapsedNow()}")
                assertFalse(lease.isValid)
                assertEquals(Duration.ZERO, lease.remaining)
            }
            servers.awaitFree(KEY)
        }

    @ParameterizedTest
    @EnumSource
    fun aLeaseChangesHandsWhileTwoServersHang(face: Face) =
        onFiveServers { servers ->
            val redlock = face.connectToAll(servers)
            val lease = redlock.acquireOnAll(KEY, servers)
            val token = lease.transfer()
            assertEquals(LeaseState.LetGo, lease.state)
            servers.take(2).whileStopped {
                val lock = face.connectRedlock(servers.urls, timeout = LONG).lock(KEY, LONG)
                val adopted = lock.adopt(token)
                assertEquals(lease.fence, adopted.fence)
                adopted.verify(LONG / 2)
                assertThrows(AlreadyHeldException::class.java) { runBlocking { lock.adopt(token) } }
                adopted.release()
                assertThrows(LostException::class.java) { runBlocking { lock.adopt(token) } }
            }
        }

    @ParameterizedTest
    @EnumSource
    fun aServerThatLostTheLockHasItAgainIfThatWasAskedFor(face: Face) =
        onFiveServers { servers ->
            for (rejoin in listOf(true, false)) {
                val lease = face.connectToAll(servers, rejoin).acquireOnAll(KEY, servers)
                servers[0].bystander.flushAll()
                if (rejoin) {
                    // A busy machine may be too late for one extend.
                    eventually {
                        runBlocking { lease.extend() }
                        servers.take(1).holding(KEY) == 1
                    }
                } else {
                    repeat(3) { lease.extend() }
                    assertEquals(4, servers.holding(KEY))
                }
                lease.release()
                servers.awaitFree(KEY)
            }
        }

    @Test
    fun theBodyIsCancelledByChoiceOnceAQuorumSaysNo() =
        onFiveServers { servers ->
            Tallylock.connectRedlock(servers.urls).use { redlock ->
                val lost =
                    assertThrows(LostException::class.java) {
                        runBlocking {
                            val lock = redlock.lock(KEY, LONG, Renewal.Every(50.milliseconds))
                            lock.withLock(wait = PATIENCE, cancelOnLoss = true) {
                                servers.take(3).forEach { it.plant(KEY, "another") }
                                withTimeout(1.minutes) { awaitCancellation() }
                            }
                        }
                    }
                assertEquals("taken_over", lost.reason)
            }
        }

    @ParameterizedTest
    @EnumSource
    fun inMemoryTimeIsWhatATestLetsPass(face: Face) =
        runBlocking(Dispatchers.Default) {
            val names = List(3) { "memory://${UUID.randomUUID()}" }
            val redlock = face.connectRedlock(names, owner = Owner.Label("biller-7"))
            val lock = redlock.lock(KEY, LONG)
            val lease = lock.acquire()
            val waiter = redlock.lock(KEY, LONG)
            val busy = assertThrows(BusyException::class.java) { runBlocking { waiter.acquire(LONG / 2) } }
            assertTrue("held by another on" in busy.message.orEmpty(), busy.message)
            // All who wait are told: the clocks have jumped.
            assertTrue(lease.remaining <= LONG / 2, "${lease.remaining}")
            for (name in names) {
                val memory = face.connect(name).memory!!
                val found = memory.keys().single { it.key.decodeToString() == KEY }
                assertTrue(found.value!!.decodeToString().endsWith(".biller-7"))
                memory.advance(LONG)
            }
            assertEquals("expired", (lease.state as LeaseState.Lost).exception.reason)
            assertThrows(LostException::class.java) { runBlocking { lease.extend() } }
            lock.withLock(null) { assertTrue(it.fence > lease.fence) }
        }

    private suspend fun assertLost(
        lease: FaceLease,
        reason: String,
        words: String,
    ) {
        val end = withTimeout(1.minutes) { lease.awaitEnd() }
        val lost = assertInstanceOf(LeaseState.Lost::class.java, end).exception
        assertEquals(reason, lost.reason)
        assertTrue(words in lost.message.orEmpty(), lost.message)
        val again = assertThrows(LostException::class.java) { runBlocking { lease.release() } }
        assertEquals(reason, again.reason)
    }

    private companion object {
        const val KEY = "invoice:42"
        val LONG = 1.minutes
        val PATIENCE = 20.seconds

        // Short enough to be outlived in a test, long enough for a busy machine.
        val TTL = 3.seconds
    }
}
