package dev.tallylock

import dev.tallylock.testing.FaceClient
import dev.tallylock.testing.FaultProxy
import dev.tallylock.testing.Setup
import dev.tallylock.testing.TestServer
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import kotlin.time.Duration
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

/** Each verb with the reply to its request lost: the server has executed it, and nobody knows. */
class LostReplyTest {
    @ParameterizedTest
    @MethodSource(SETUPS)
    fun addIsNotRepeated(setup: Setup) =
        onLossyServer(setup) {
            val counter = client.counter(KEY, 15.minutes)
            counter.add(1)
            assertUnknown { counter.add(5) }
            assertEquals("6", bystander.get(KEY))
            assertEquals(6, counter.read())
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun drainIsNotRepeated(setup: Setup) =
        onLossyServer(setup) {
            val counter = client.counter(KEY, 15.minutes)
            counter.drain()
            counter.add(5)
            assertUnknown { counter.drain() }
            assertEquals("0", bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun fencedDrainIsNotRepeated(setup: Setup) =
        onLossyServer(setup) {
            val counter = client.counter(KEY, 15.minutes)
            counter.drain(fence = 1)
            counter.add(5)
            assertUnknown { counter.drain(fence = 2) }
            assertEquals("0", bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun finishIsNotRepeated(setup: Setup) =
        onLossyServer(setup) {
            val counter = client.counter(KEY, 15.minutes)
            counter.finish()
            counter.add(5)
            assertUnknown { counter.finish() }
            assertEquals(null, bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun replaceIfPresentIsNotRepeated(setup: Setup) =
        onLossyServer(setup) {
            val value = client.value(KEY)
            server.plant(KEY, "v")
            value.replaceIfPresent("v".encodeToByteArray(), 1.minutes)
            assertUnknown { value.replaceIfPresent("w".encodeToByteArray(), 1.minutes) }
            assertEquals("w", bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun compareAndSetIsNotRepeated(setup: Setup) =
        onLossyServer(setup) {
            val value = client.value(KEY)
            server.plant(KEY, "v")
            value.compareAndSet("v".encodeToByteArray(), "w".encodeToByteArray(), 1.minutes)
            assertUnknown { value.compareAndSet("w".encodeToByteArray(), "x".encodeToByteArray(), 1.minutes) }
            assertEquals("x", bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun guardedWritesAreNotRepeated(setup: Setup) =
        onLossyServer(setup) {
            val guarded = client.guarded(KEY)
            guarded.set("v".encodeToByteArray(), 7, 1.minutes)
            guarded.delete(7)
            assertUnknown { guarded.set("w".encodeToByteArray(), 7, 1.minutes) }
            assertEquals("w", bystander.get(KEY))
            assertUnknown { guarded.delete(7) }
            assertEquals(null, bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun inspectIsRepeatedAndStealIsNot(setup: Setup) =
        onLossyServer(setup) {
            val lock = client.lock(KEY, 30.seconds)
            lock.inspect()
            lock.steal("v".encodeToByteArray(), "it hangs")
            server.plant(KEY, "v")
            assertEquals("v", losing { checkNotNull(lock.inspect()).token.decodeToString() })
            assertUnknown { lock.steal("v".encodeToByteArray(), "it hangs") }
            assertEquals(null, bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun keyedAddIsRepeated(setup: Setup) =
        onLossyServer(setup) {
            val counter = client.counter(KEY, 15.minutes)
            counter.add(1, "evt-0")
            assertEquals(Added(6, applied = false), losing { counter.add(5, "evt-1") })
            assertEquals("6", bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun claimIsRepeated(setup: Setup) =
        onLossyServer(setup) {
            val counter = client.counter(KEY, 15.minutes)
            counter.add(1)
            counter.claim("run-0")
            counter.add(5)
            assertEquals(Claim(5, ClaimState.Open), losing { counter.claim("run-1") })
            assertEquals("0", bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun commitIsRepeated(setup: Setup) =
        onLossyServer(setup) {
            val counter = client.counter(KEY, 15.minutes)
            counter.add(1)
            counter.claim("run-0")
            counter.commit("run-0", 1)
            counter.add(5)
            counter.claim("run-1")
            losing { counter.commit("run-1", 5) }
            assertEquals(Claim(5, ClaimState.Committed), counter.claim("run-1"))
            assertEquals("0", bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun abortIsRepeated(setup: Setup) =
        onLossyServer(setup) {
            val counter = client.counter(KEY, 15.minutes)
            counter.add(1)
            counter.claim("run-0")
            counter.abort("run-0")
            counter.claim("run-1")
            assertEquals(1, losing { counter.abort("run-1") })
            assertEquals(Claim(1, ClaimState.Aborted), counter.claim("run-1"))
            assertEquals("1", bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun readIsRepeated(setup: Setup) =
        onLossyServer(setup) {
            val counter = client.counter(KEY, 15.minutes)
            counter.add(5)
            counter.read()
            assertEquals(5, losing { counter.read() })
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun getIsRepeated(setup: Setup) =
        onLossyServer(setup) {
            val value = client.value(KEY)
            server.plant(KEY, "v")
            value.get()
            assertArrayEquals("v".encodeToByteArray(), losing { value.get() })
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun touchIsRepeated(setup: Setup) =
        onLossyServer(setup) {
            val value = client.value(KEY)
            server.plant(KEY, "v")
            value.touch(1.minutes)
            assertTrue(losing { value.touch(15.minutes) })
            assertTrue(bystander.pttl(KEY) > 800_000)
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun acquireFindsItsOwnLock(setup: Setup) =
        onLossyServer(setup) {
            val lock = client.lock(KEY, 30.seconds)
            lock.acquire().release()
            val lease = losing { lock.acquire() }
            lease.ensure(20.seconds)
            lease.release()
            assertEquals(null, bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun waitingAcquireFindsItsOwnLock(setup: Setup) =
        onLossyServer(setup) {
            val lock = client.lock(KEY, 30.seconds)
            lock.acquire(5.seconds).release()
            val lease = losing { lock.acquire(5.seconds) }
            lease.release()
            assertEquals(null, bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun extendIsRepeated(setup: Setup) =
        onLossyServer(setup) {
            val lease = client.lock(KEY, 30.seconds).acquire()
            lease.extend()
            losing { lease.extend(15.minutes) }
            lease.ensure(14.minutes)
            assertTrue(bystander.pttl(KEY) > 800_000)
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun releaseIsRepeated(setup: Setup) =
        onLossyServer(setup) {
            val lock = client.lock(KEY, 30.seconds)
            lock.acquire().release()
            val lease = lock.acquire()
            losing { lease.release() }
            assertEquals(null, bystander.get(KEY))
        }

    @ParameterizedTest
    @MethodSource(SETUPS)
    fun aConnectionThatIsLostWhileItOpensIsOpenedAgain(setup: Setup) =
        FaultProxy(TestServer.empty(setup.kind)).use { proxy ->
            runBlocking {
                setup.face.connect(proxy.url, timeout = 30.seconds).use { client ->
                    // A call that waits may need its first connection only then, whoever has connected before.
                    for ((count, wait) in listOf(Duration.ZERO, 30.seconds).withIndex()) {
                        proxy.cut()
                        proxy.loseMatching("SETNAME")
                        client.lock(KEY, 30.seconds).acquire(wait).release()
                        assertEquals(count + 1L, proxy.stats().lost)
                    }
                }
            }
        }

    private fun onLossyServer(
        setup: Setup,
        test: suspend Scene.() -> Unit,
    ) {
        val server = TestServer.empty(setup.kind)
        FaultProxy(server).use { proxy ->
            runBlocking {
                setup.face.connect(proxy.url).use { client -> Scene(client, proxy, server).test() }
            }
        }
    }

    private class Scene(
        val client: FaceClient,
        private val proxy: FaultProxy,
        val server: TestServer,
    ) {
        val bystander = server.bystander

        /** Runs a call whose first reply is lost. It must have been run before, so that the server knows its script. */
        suspend fun <T> losing(call: suspend () -> T): T {
            val before = proxy.stats().lost
            proxy.loseMatching(KEY)
            try {
                return call()
            } finally {
                val stats = proxy.stats()
                assertEquals(before + 1, stats.lost, "replies that were lost")
                assertEquals(0, stats.armed, "traps that nothing went into")
            }
        }

        suspend fun assertUnknown(call: suspend () -> Any?) {
            val exception = assertThrows(OutcomeUnknownException::class.java) { runBlocking { losing(call) } }
            assertEquals(Applied.Maybe, exception.applied)
            assertEquals(KEY, exception.key)
        }
    }

    private companion object {
        const val KEY = "session:42:billableSecondsPending"
        const val SETUPS = "dev.tallylock.testing.Setup#all"
    }
}
