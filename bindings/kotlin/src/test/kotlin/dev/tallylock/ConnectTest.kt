package dev.tallylock

import dev.tallylock.testing.Face
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

/** Connecting, and what a client says of itself. */
class ConnectTest {
    @ParameterizedTest
    @EnumSource
    fun aWrongPasswordIsForbiddenAndNotShown(face: Face) {
        val server = TestServer.empty(ServerKind.Valkey)
        val url = server.url.replace("//", "//nobody:sesame@")
        val exception = assertThrows(ForbiddenException::class.java) { runBlocking { face.connect(url) } }
        assertFalse("sesame" in exception.message.orEmpty())
    }

    @ParameterizedTest
    @EnumSource
    fun aServerThatIsNotThereIsUnavailable(face: Face) {
        // Port 1 of loopback belongs to a service that nobody runs.
        val exception =
            assertThrows(UnavailableException::class.java) {
                runBlocking { face.connect("redis://127.0.0.1:1", timeout = 200.milliseconds) }
            }
        assertEquals(Applied.No, exception.applied)
    }

    @ParameterizedTest
    @EnumSource
    fun badArgumentsAreRefused(face: Face) {
        for (url in listOf("", "http://127.0.0.1", "127.0.0.1:6379")) {
            assertThrows(InvalidArgumentException::class.java) { runBlocking { face.connect(url) } }
        }
        for (timeout in listOf(Duration.ZERO, (-1).seconds, 1.microseconds, Duration.INFINITE)) {
            assertThrows(InvalidArgumentException::class.java) { runBlocking { face.connect("memory://", timeout) } }
        }
    }

    @ParameterizedTest
    @EnumSource
    fun onlyMemoryHasTheTestFace(face: Face) =
        runBlocking {
            val server = TestServer.empty(ServerKind.Redis)
            face.connect(server.url).use { assertNull(it.memory) }
        }

    @ParameterizedTest
    @EnumSource
    fun theOwnerIsSeenInTheLock(kind: ServerKind) =
        runBlocking {
            val server = TestServer.empty(kind)
            val seen =
                listOf(Owner.HostAndPid, Owner.Label("billing-1"), Owner.None).map { owner ->
                    Tallylock.connect(server.url, owner = owner).use { client ->
                        client.lock(KEY, 30.seconds).withLock { server.bystander.get(KEY).drop(TOKEN_LENGTH) }
                    }
                }
            assertTrue(seen[0].endsWith("${ProcessHandle.current().pid()}"), seen[0])
            assertEquals(listOf(".billing-1", ""), seen.drop(1))
        }

    @ParameterizedTest
    @EnumSource
    fun scriptsCanBeAvoidedFromTheFirstCallOn(kind: ServerKind) =
        runBlocking {
            val server = TestServer.empty(kind)
            server.bystander.configResetStat()
            Tallylock.connect(server.url, avoidScripts = true).use { client ->
                assertEquals(1, client.counter(KEY, 15.minutes).add(1))
            }
            Tallylock.connectBlocking(server.url, avoidScripts = true).use { client ->
                assertEquals(2, client.counter(KEY, java.time.Duration.ofMinutes(15)).add(1))
            }
            val counted = server.bystander.info("commandstats")
            assertTrue("cmdstat_exec:calls=2" in counted && "cmdstat_eval" !in counted, counted)
        }

    @ParameterizedTest
    @EnumSource
    fun healedCountsDrainsThatGaveATtlBack(kind: ServerKind) =
        runBlocking {
            val server = TestServer.empty(kind)
            server.bystander.set("session:1:pending", "7")
            server.bystander.set("session:2:pending", "8")
            Tallylock.connect(server.url).use { client ->
                assertEquals(0, client.healed)
                assertEquals(7, client.counter("session:1:pending", 15.minutes).drain())
                assertEquals(8, client.blocking.counter("session:2:pending", java.time.Duration.ofMinutes(15)).drain())
                assertEquals(2, client.healed)
                assertEquals(2, client.blocking.healed)
            }
            assertTrue(server.bystander.pttl("session:1:pending") > 0)
        }

    @ParameterizedTest
    @EnumSource
    fun manyCoroutinesShareAClient(kind: ServerKind) {
        val server = TestServer.empty(kind)
        val totals =
            runBlocking(Dispatchers.Default) {
                Tallylock.connect(server.url).use { client ->
                    val counter = client.counter("session:42:pending", 15.minutes)
                    List(COROUTINES) { async { counter.add(1) } }.awaitAll()
                }
            }
        assertEquals((1L..COROUTINES).toSet(), totals.toSet())
    }

    private companion object {
        const val KEY = "invoice:42"
        const val TOKEN_LENGTH = 32
        const val COROUTINES = 2_000
    }
}
