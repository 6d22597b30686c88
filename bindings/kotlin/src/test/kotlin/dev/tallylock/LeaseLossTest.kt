package dev.tallylock

import dev.tallylock.testing.Face
import dev.tallylock.testing.FaceLease
import dev.tallylock.testing.FaultProxy
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertInstanceOf
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

/** How a holder is told that its lease is lost. */
class LeaseLossTest {
    @ParameterizedTest
    @EnumSource
    fun aSilentNetworkIsToldAtTheDeadline(face: Face) {
        for (kind in ServerKind.entries) {
            val server = TestServer.empty(kind)
            FaultProxy(server).use { proxy ->
                runBlocking(Dispatchers.Default) {
                    face.connect(proxy.url).use { client ->
                        val lease = client.lock(KEY, TTL * 2).acquire()
                        proxy.hold()
                        assertToldAtTheDeadline(lease)
                        val lost = assertThrows(LostException::class.java) { runBlocking { lease.release() } }
                        assertEquals("unreachable", lost.reason)
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    fun aServerThatHangsIsToldAtTheDeadline(face: Face) {
        val server = TestServer.empty(ServerKind.Valkey)
        runBlocking(Dispatchers.Default) {
            face.connect(server.url).use { client ->
                val lease = client.lock(KEY, TTL * 2).acquire()
                server.whileStopped { assertToldAtTheDeadline(lease) }
            }
        }
    }

    private suspend fun assertToldAtTheDeadline(lease: FaceLease) {
        val told = TimeSource.Monotonic.markNow()
        val remaining = lease.remaining
        val lost = assertInstanceOf(LeaseState.Lost::class.java, withTimeout(1.minutes) { lease.awaitEnd() })
        assertEquals("unreachable", lost.exception.reason)
        // The deadline is known to a millisecond; a busy machine may tell late what it knew in time. A call may take longer.
        assertTrue(told.elapsedNow() in remaining - 2.milliseconds..remaining + 20.seconds, "${told.elapsedNow()}")
        assertEquals("unreachable", (lease.state as LeaseState.Lost).exception.reason)
    }

    @ParameterizedTest
    @EnumSource
    fun anotherOwnerIsToldAtTheNextRenewal(face: Face) =
        onServer { server ->
            face.connect(server.url).use { client ->
                val lease = client.lock(KEY, 1.minutes, Renewal.Every(50.milliseconds)).acquire()
                server.plant(KEY, "another")
                val end = withTimeout(20.seconds) { lease.awaitEnd() }
                assertEquals("taken_over", (end as LeaseState.Lost).exception.reason)
            }
        }

    @ParameterizedTest
    @EnumSource
    fun whoLetsGoIsToldThat(face: Face) =
        onServer { server ->
            face.connect(server.url).use { client ->
                val lease = client.lock(KEY, 1.minutes).acquire()
                val end = async { lease.awaitEnd() }
                assertNull(withTimeoutOrNull(200.milliseconds) { end.join() }, "it is held")
                lease.release()
                assertEquals(LeaseState.LetGo, withTimeout(20.seconds) { end.await() })
            }
        }

    @ParameterizedTest
    @EnumSource
    fun aClosedClientTellsTheEnd(face: Face) =
        onServer { server ->
            val client = face.connect(server.url)
            val lease = client.lock(KEY, TTL).acquire()
            val other = client.lock("other", TTL).acquire()
            val end = async(start = CoroutineStart.UNDISPATCHED) { lease.awaitEnd() }
            client.close()
            for (told in listOf(withTimeout(1.minutes) { end.await() }, withTimeout(1.minutes) { other.awaitEnd() })) {
                assertEquals("expired", (told as LeaseState.Lost).exception.reason)
            }
        }

    @ParameterizedTest
    @EnumSource
    fun aHolderThatWasHeldUpSeesTheTruthAtOnce(face: Face) =
        onServer { server ->
            face.connect(server.url).use { client ->
                val lease = client.lock(KEY, TTL, Renewal.Off).acquire()
                assertEquals(LeaseState.Held, lease.state)
                // Nothing is told to this thread meanwhile.
                Thread.sleep(TTL.inWholeMilliseconds)
                assertEquals("expired", (lease.state as LeaseState.Lost).exception.reason)
                assertFalse(lease.isValid)
            }
        }

    @ParameterizedTest
    @EnumSource
    fun inMemoryTimeIsWhatATestLetsPass(face: Face) =
        runBlocking(Dispatchers.Default) {
            face.connect("memory://").use { client ->
                val lease = client.lock(KEY, 30.seconds).acquire()
                assertNull(withTimeoutOrNull(100.milliseconds) { lease.awaitEnd() })
                client.memory!!.advance(30.seconds)
                assertEquals("expired", (lease.state as LeaseState.Lost).exception.reason)
                assertTrue(withTimeout(20.seconds) { lease.awaitEnd() } is LeaseState.Lost)
            }
        }

    @Test
    fun theBodyIsCancelledByChoice() =
        onServer { server ->
            Tallylock.connect(server.url).use { client ->
                val lost =
                    assertThrows(LostException::class.java) {
                        runBlocking {
                            client.lock(KEY, TTL).withLock(cancelOnLoss = true) {
                                server.plant(KEY, "another")
                                withTimeout(1.minutes) { awaitCancellation() }
                            }
                        }
                    }
                assertEquals("taken_over", lost.reason)
            }
        }

    @Test
    fun nobodyIsCancelledUnasked() =
        onServer { server ->
            Tallylock.connect(server.url).use { client ->
                var hasRun = false
                assertThrows(LostException::class.java) {
                    runBlocking {
                        client.lock(KEY, TTL).withLock { lease ->
                            server.plant(KEY, "another")
                            withTimeout(1.minutes) { lease.state.first { it != LeaseState.Held } }
                            hasRun = true
                        }
                    }
                }
                assertTrue(hasRun)
            }
        }

    @Test
    fun aBodyThatIsCancelledByAnotherIsCancelled() =
        onServer { server ->
            Tallylock.connect(server.url).use { client ->
                val entered = CompletableDeferred<Unit>()
                val working =
                    launch {
                        client.lock(KEY, TTL).withLock(cancelOnLoss = true) {
                            entered.complete(Unit)
                            awaitCancellation()
                        }
                    }
                entered.await()
                working.cancelAndJoin()
                assertTrue(working.isCancelled)
                assertFalse(server.bystander.exists(KEY))
            }
        }

    @Test
    fun whatTheBodyThrowsIsNotHiddenByTheLoss() =
        onServer { server ->
            Tallylock.connect(server.url).use { client ->
                val raised = IllegalStateException("the body's own")
                val caught =
                    assertThrows(IllegalStateException::class.java) {
                        runBlocking {
                            client.lock(KEY, TTL).withLock(cancelOnLoss = true) {
                                server.plant(KEY, "another")
                                try {
                                    awaitCancellation()
                                } finally {
                                    throw raised
                                }
                            }
                        }
                    }
                assertSame(raised, generateSequence<Throwable>(caught) { it.cause }.last())
            }
        }

    @Test
    fun aBodyThatEndsInTimeIsNotCancelled() =
        onServer { server ->
            Tallylock.connect(server.url).use { client ->
                val fence = client.lock(KEY, TTL).withLock(cancelOnLoss = true) { it.fence }
                assertTrue(fence > 0)
                assertFalse(server.bystander.exists(KEY))
            }
        }

    private fun onServer(test: suspend CoroutineScope.(server: TestServer) -> Unit) {
        for (kind in ServerKind.entries) {
            val server = TestServer.empty(kind)
            runBlocking(Dispatchers.Default) { test(server) }
        }
    }

    private companion object {
        // Short enough to be outlived in a test, long enough for a busy machine.
        val TTL = 1500.milliseconds
        const val KEY = "invoice:42"
    }
}
