package dev.tallylock

import dev.tallylock.ffi.leasesCount
import dev.tallylock.testing.Face
import dev.tallylock.testing.FaceClient
import dev.tallylock.testing.FaultProxy
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import dev.tallylock.testing.eventually
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

/** Clients and leases that are closed in use, or forgotten. */
class ClosingTest {
    @ParameterizedTest
    @EnumSource
    fun aWaitingAcquireEndsAsClosed(face: Face) {
        val server = TestServer.empty(ServerKind.Valkey)
        server.plant(KEY, "of another library")
        FaultProxy(server).use { proxy ->
            runBlocking(Dispatchers.Default) {
                val client = face.connect(proxy.url)
                proxy.holdMatching(KEY)
                val acquiring = async { runCatching { client.lock(KEY, 30.seconds).acquire(wait = 10.minutes) } }
                proxy.awaitHeld(1)
                client.close()
                assertClosed { acquiring.await().getOrThrow() }
            }
        }
        assertEquals("of another library", server.bystander.get(KEY))
    }

    @Test
    fun aCallUnderWayEndsAsClosed() {
        val server = TestServer.empty(ServerKind.Valkey)
        FaultProxy(server).use { proxy ->
            runBlocking(Dispatchers.Default) {
                val client = Tallylock.connect(proxy.url, timeout = 1.minutes)
                proxy.holdMatching(KEY)
                val adding = async { runCatching { client.counter(KEY, 15.minutes).add(1) } }
                proxy.awaitHeld(1)
                client.close()
                assertClosed { adding.await().getOrThrow() }
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    fun eachLaterCallIsClosed(face: Face) =
        runBlocking {
            val client = face.connect("memory://")
            val counter = client.counter(KEY, 15.minutes)
            val value = client.value(KEY)
            val lock = client.lock(KEY, 30.seconds)
            client.close()
            client.close()
            assertClosed { counter.add(1) }
            assertClosed { counter.read() }
            assertClosed { counter.drain() }
            assertClosed { counter.finish() }
            assertClosed { value.get() }
            assertClosed { value.touch(1.minutes) }
            assertClosed { lock.acquire() }
            assertClosed { lock.acquire(wait = 1.seconds) }
            assertClosed { client.memory }
        }

    @Test
    fun closingOneFaceClosesTheOther() =
        runBlocking {
            val client = Tallylock.connect("memory://")
            client.blocking.close()
            assertClosed { client.counter(KEY, 15.minutes).add(1) }
        }

    @ParameterizedTest
    @EnumSource
    fun aForgottenLeaseIsFreedAndItsLockStays(face: Face) {
        val server = TestServer.empty(ServerKind.Valkey)
        runBlocking { face.connect(server.url) }.use { client ->
            collectUntil { leasesCount() == 0UL }
            forgetLease(client)
            assertEquals(1UL, leasesCount())
            collectUntil { leasesCount() == 0UL }
            assertTrue(server.bystander.exists(KEY))
        }
    }

    @Test
    fun aForgottenClientIsClosed() {
        val before = receivers()
        runBlocking { Tallylock.connect("memory://").counter(KEY, 15.minutes).add(1) }
        collectUntil { (receivers() - before).isEmpty() }
    }

    /** No frame of the caller may hold the lease. */
    private fun forgetLease(client: FaceClient) =
        runBlocking { client.lock(KEY, 10.minutes).acquire().ensure(1.minutes) }

    private fun collectUntil(condition: () -> Boolean) =
        eventually {
            System.gc()
            condition()
        }

    private fun receivers(): Set<Thread> =
        Thread
            .getAllStackTraces()
            .keys
            .filter { it.name.startsWith("tallylock-completions-") }
            .toSet()

    private fun assertClosed(call: suspend () -> Any?) {
        val closed = assertThrows(ClosedException::class.java) { runBlocking { call() } }
        assertEquals("closed", closed.code)
        assertEquals(Applied.No, closed.applied)
    }

    private companion object {
        const val KEY = "invoice:42"
    }
}
