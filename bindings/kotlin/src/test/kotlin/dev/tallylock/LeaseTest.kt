package dev.tallylock

import dev.tallylock.ffi.leasesCount
import dev.tallylock.testing.Face
import dev.tallylock.testing.FaceClient
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import dev.tallylock.testing.eventually
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import kotlin.time.Duration
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.nanoseconds

/** Leases that renew themselves, and that pass from one holder to another. */
class LeaseTest {
    @ParameterizedTest
    @EnumSource
    fun aLeaseOutlivesItsTtl(face: Face) =
        onServer(face) { client, server ->
            val lease = client.lock(KEY, TTL * 2).acquire()
            assertNull(withTimeoutOrNull(TTL * 4) { lease.awaitEnd() })
            lease.ensure(Duration.ZERO)
            lease.verify(Duration.ZERO)
            lease.release()
            assertFalse(server.bystander.exists(KEY))
            assertEquals(LeaseState.LetGo, lease.state)
        }

    @ParameterizedTest
    @EnumSource
    fun withoutRenewalItEndsWithItsTtl(face: Face) =
        onServer(face) { client, _ ->
            val lease = client.lock(KEY, TTL, Renewal.Off).acquire()
            client.lock(KEY, TTL).acquire(wait = TTL * 4)
            assertFalse(lease.isValid)
            assertEquals("expired", assertThrows(LostException::class.java) { runBlocking { lease.release() } }.reason)
        }

    @ParameterizedTest
    @EnumSource
    fun whoHangsLosesIt(face: Face) =
        onServer(face) { client, _ ->
            val lease = client.lock(KEY, TTL, maxHold = TTL).acquire()
            assertTrue(lease.isValid)
            client.lock(KEY, 1.minutes).acquire(wait = TTL * 6)
            assertFalse(lease.isValid)
        }

    @ParameterizedTest
    @EnumSource
    fun whatIsForgottenIsRenewedUntilItIsCollected(face: Face) =
        onServer(face) { client, _ ->
            forgetOne(client)
            eventually {
                System.gc()
                leasesCount() == 0uL
            }
            client.lock(KEY, 1.minutes).acquire(wait = TTL * 4).release()
        }

    /** No frame of the caller may hold the lease. */
    private fun forgetOne(client: FaceClient) =
        runBlocking { assertEquals(LeaseState.Held, client.lock(KEY, TTL).acquire().state) }

    @ParameterizedTest
    @EnumSource
    fun aLeaseChangesHands(face: Face) =
        onServer(face) { client, server ->
            lateinit var token: String
            var fence = 0L
            client.lock(KEY, TTL).withLock(null) { lease ->
                token = lease.transfer()
                fence = lease.fence
                assertEquals(LeaseState.LetGo, lease.state)
            }
            face.connect(server.url).use { other ->
                val lock = other.lock(KEY, TTL)
                val adopted = lock.adopt(token)
                assertEquals(fence, adopted.fence)
                assertThrows(AlreadyHeldException::class.java) { runBlocking { lock.adopt(token) } }
                adopted.verify(Duration.ZERO)
                adopted.release()
                assertFalse(server.bystander.exists(KEY))
                assertThrows(LostException::class.java) { runBlocking { lock.adopt(token) } }
            }
        }

    @ParameterizedTest
    @EnumSource
    fun whatIsNoTokenIsRefused(face: Face) =
        onServer(face) { client, _ ->
            for (token in listOf("", "no token", "1:", ":a", "1:\ud800", "1:" + "x".repeat(100))) {
                val lock = client.lock(KEY, TTL)
                val refused =
                    assertThrows(InvalidArgumentException::class.java) { runBlocking { lock.adopt(token) } }
                assertEquals(KEY, refused.key)
            }
        }

    @ParameterizedTest
    @EnumSource(ServerKind::class)
    fun anAdoptionThatIsCancelledLeavesTheLeaseToBeAdopted(kind: ServerKind) {
        val server = TestServer.empty(kind)
        runBlocking {
            Tallylock.connect(server.url).use { client ->
                val token = client.lock(KEY, 1.minutes).acquire().transfer()
                val adopting =
                    launch(start = CoroutineStart.UNDISPATCHED) { client.lock(KEY, 1.minutes).adopt(token) }
                // So its end is there, but was not seen.
                Thread.sleep(SHORT_WAIT_MILLIS)
                adopting.cancelAndJoin()
                client.lock(KEY, 1.minutes).adopt(token).release()
            }
        }
        assertFalse(server.bystander.exists(KEY))
    }

    @ParameterizedTest
    @EnumSource
    fun aHandleThatHoldsTheLockDoesNotWaitForItself(face: Face) =
        onServer(face) { client, _ ->
            val lock = client.lock(KEY, 1.minutes)
            lock.withLock(null) {
                val held =
                    assertThrows(AlreadyHeldException::class.java) { runBlocking { lock.acquire(wait = 1.minutes) } }
                assertEquals(KEY, held.key)
            }
            lock.acquire().release()
        }

    @ParameterizedTest
    @EnumSource
    fun aKeepingThatCannotBeIsRefused(face: Face) =
        onServer(face) { client, _ ->
            val intervals =
                listOf(TTL / 2 + 1.milliseconds, Duration.ZERO, (-1).nanoseconds, (-1).days, Duration.INFINITE)
            for (interval in intervals) {
                val refused =
                    assertThrows(InvalidArgumentException::class.java) {
                        client.lock(KEY, TTL, Renewal.Every(interval))
                    }
                assertEquals(KEY, refused.key)
            }
            for (longest in listOf(Duration.ZERO, (-1).nanoseconds, (-1).days, Duration.INFINITE)) {
                assertThrows(InvalidArgumentException::class.java) { client.lock(KEY, TTL, maxHold = longest) }
            }
        }

    private fun onServer(
        face: Face,
        test: suspend (client: FaceClient, server: TestServer) -> Unit,
    ) {
        for (kind in ServerKind.entries) {
            val server = TestServer.empty(kind)
            runBlocking(Dispatchers.Default) { face.connect(server.url).use { client -> test(client, server) } }
        }
    }

    private companion object {
        // Short enough to be outlived in a test, long enough for a busy machine.
        val TTL = 1500.milliseconds
        const val SHORT_WAIT_MILLIS = 300L
        const val KEY = "invoice:42"
    }
}
