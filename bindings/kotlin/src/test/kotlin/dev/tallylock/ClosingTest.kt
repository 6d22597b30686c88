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

    @ParameterizedTest
    @EnumSource
    fun aCallUnderWayRunsToItsEnd(face: Face) {
        val server = TestServer.empty(ServerKind.Valkey)
        FaultProxy(server).use { proxy ->
            runBlocking(Dispatchers.Default) {
                val client = face.connect(proxy.url, timeout = 1.minutes)
                val counter = client.counter(KEY, 15.minutes)
                assertEquals(1, counter.add(1))
                proxy.holdMatching(KEY)
                val adding = async { counter.add(1) }
                proxy.awaitHeld(1)
                assertEquals("2", server.bystander.get(KEY), "the server has added it")
                client.close()
                assertClosed { counter.add(1) }
                proxy.go()
                assertEquals(2, adding.await())
            }
            // It took its connections with it.
            eventually { connections(server) == 0 }
        }
    }

    @Test
    fun anAcquireUnderWayEndsAsClosedAndLeavesNoLock() {
        val server = TestServer.empty(ServerKind.Valkey)
        FaultProxy(server).use { proxy ->
            runBlocking(Dispatchers.Default) {
                val client = Tallylock.connect(proxy.url, timeout = 1.minutes)
                client.lock(KEY, 10.minutes).acquire().release()
                proxy.holdMatching(KEY)
                val acquiring = async { runCatching { client.lock(KEY, 10.minutes).acquire() } }
                proxy.awaitHeld(1)
                assertTrue(server.bystander.exists(KEY), "the server has granted it")
                client.close()
                assertClosed { acquiring.await().getOrThrow() }
                proxy.go()
                eventually { !server.bystander.exists(KEY) }
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    fun closingEndsTheConnectionsOfLeasesThatAreHeld(face: Face) {
        val server = TestServer.empty(ServerKind.Valkey)
        runBlocking {
            val client = face.connect(server.url)
            val lease = client.lock(KEY, 10.minutes).acquire(wait = 20.seconds)
            assertTrue(connections(server) > 0)
            client.close()
            eventually { connections(server) == 0 }
            assertClosed { lease.release() }
            assertTrue(server.bystander.exists(KEY))
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
            assertClosed { counter.add(1, "evt-1") }
            assertClosed { counter.drain(fence = 1) }
            assertClosed { counter.claim("run-1") }
            assertClosed { counter.commit("run-1", 1) }
            assertClosed { counter.abort("run-1") }
            assertClosed { counter.claims() }
            assertClosed { client.addMany(listOf(counter.entry(1))) }
            assertClosed { client.scan("*") }
            assertClosed { value.get() }
            assertClosed { value.touch(1.minutes) }
            assertClosed { value.update(1.minutes) { it } }
            assertClosed { lock.acquire() }
            assertClosed { lock.acquire(wait = 20.seconds) }
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

    private fun connections(server: TestServer): Int =
        server.bystander
            .clientList()
            .lines()
            .count { "name=tallylock" in it }

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
