package dev.tallylock

import dev.tallylock.testing.Setup
import dev.tallylock.testing.TestServer
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import redis.clients.jedis.Protocol
import redis.clients.jedis.params.SetParams
import java.util.concurrent.atomic.AtomicLong
import kotlin.random.Random
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

/**
 * A thousand leases while the server forgets its scripts and kills its connections: none of ours is lost, each loss is told,
 * and no key is left.
 */
class CyclesTest {
    @ParameterizedTest
    @MethodSource("dev.tallylock.testing.Setup#all")
    fun aThousandCyclesLoseNothingAndMissNothing(setup: Setup) {
        val server = TestServer.empty(setup.kind)
        val disturbance = Disturbance(server)
        runBlocking(Dispatchers.IO) {
            setup.face.connect(server.url, timeout = PATIENCE).use { client ->
                val workers =
                    List(WORKERS) { worker ->
                        launch {
                            val random = Random(worker)
                            repeat(CYCLES) { cycle ->
                                val renewal = Renewal.Every(random.nextInt(1, 6).milliseconds)
                                val lease = client.lock("lock:$worker", TTL, renewal).acquire(PATIENCE)
                                disturbance.step()
                                val end = withTimeoutOrNull(random.nextInt(8).milliseconds) { lease.awaitEnd() }
                                assertNull(end, "it is ours")
                                disturbance.step()
                                val reason = disturbance.takeNowAndThen("lock:$worker", cycle)
                                if (reason == null) {
                                    lease.release()
                                } else {
                                    val lost = withTimeout(PATIENCE) { lease.awaitEnd() } as LeaseState.Lost
                                    assertEquals(reason, lost.exception.reason)
                                    val refused = runCatching { lease.release() }.exceptionOrNull()
                                    assertEquals(reason, (refused as LostException).reason)
                                    disturbance.forget("lock:$worker")
                                }
                                disturbance.step()
                            }
                        }
                    }
                disturbance.until(workers)
            }
        }
        val fences = List(WORKERS) { "lock:$it{lock:$it}:tlu1:fence" }
        assertEquals(fences, server.bystander.keys("*").sorted())
    }

    /** What an operator does to the server meanwhile, over the one connection that is not killed. */
    private class Disturbance(private val server: TestServer) {
        // They are disturbed as they proceed, so that they do.
        private val steps = AtomicLong()

        fun step() {
            steps.incrementAndGet()
        }

        /** Takes the lock away at some cycles, and says why its holder is to be told that it is lost. */
        fun takeNowAndThen(
            key: String,
            cycle: Int,
        ): String? =
            when (cycle % 25) {
                7 -> {
                    synchronized(this) { server.bystander.set(key, "another", SetParams().ex(60)) }
                    "taken_over"
                }
                19 -> {
                    forget(key)
                    "expired"
                }
                else -> null
            }

        fun forget(key: String) {
            synchronized(this) { server.bystander.del(key) }
        }

        suspend fun until(workers: List<Job>) {
            val random = Random(WORKERS)
            var next = 0L
            while (workers.any { it.isActive }) {
                delay(200.microseconds)
                if (steps.get() < next) continue
                next = steps.get() + random.nextInt(8)
                synchronized(this) {
                    if (random.nextBoolean()) {
                        server.bystander.scriptFlush()
                    } else {
                        server.bystander.sendCommand(Protocol.Command.CLIENT, "KILL", "TYPE", "normal")
                    }
                }
            }
        }
    }

    private companion object {
        const val WORKERS = 4
        const val CYCLES = 250

        // No machine is so busy that a lease of this TTL is lost by itself.
        val TTL = 10.minutes

        // How long a call may take while connections are killed.
        val PATIENCE = 60.seconds
    }
}
