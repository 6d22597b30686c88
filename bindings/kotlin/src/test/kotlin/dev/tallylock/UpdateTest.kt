package dev.tallylock

import dev.tallylock.ffi.CallException
import dev.tallylock.ffi.updatePresent
import dev.tallylock.testing.Face
import dev.tallylock.testing.FaceValue
import dev.tallylock.testing.FaultProxy
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import dev.tallylock.testing.eventually
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import kotlin.time.Duration.Companion.minutes
import dev.tallylock.ffi.close as closeClient
import dev.tallylock.ffi.open as openClient

/** Updates that are overtaken, fail or are cancelled: what is written, and that the native side keeps nothing of them. */
class UpdateTest {
    private val before = newId()

    @ParameterizedTest
    @EnumSource
    fun whatAnotherWroteMeanwhileIsChanged(face: Face) =
        onServer(face) { value, server ->
            val seen = mutableListOf<String>()
            val written =
                value.update(15.minutes) { present ->
                    seen += present.decodeToString()
                    if (seen.size == 1) server.plant(KEY, "b")
                    present + "!".encodeToByteArray()
                }
            assertArrayEquals("b!".encodeToByteArray(), written)
            assertEquals(listOf("a", "b"), seen)
            assertEquals("b!", server.bystander.get(KEY))
            assertEquals(0, kept())
        }

    @ParameterizedTest
    @EnumSource
    fun whatIsGoneMeanwhileIsNotMadeAnew(face: Face) =
        onServer(face) { value, server ->
            assertNull(
                value.update(15.minutes) { present ->
                    server.bystander.del(KEY)
                    present
                },
            )
            assertNull(server.bystander.get(KEY))
            assertEquals(0, kept())
        }

    @ParameterizedTest
    @EnumSource
    fun aFunctionThatThrowsWritesNothing(face: Face) =
        onServer(face) { value, server ->
            val raised = IllegalStateException("the function's own")
            val caught =
                assertThrows(IllegalStateException::class.java) {
                    runBlocking {
                        value.update(15.minutes) {
                            assertEquals(1, kept())
                            throw raised
                        }
                    }
                }
            assertSame(raised, caught.rootCause())
            assertEquals("a", server.bystander.get(KEY))
            assertEquals(0, kept())
        }

    @ParameterizedTest
    @EnumSource
    fun anOfferThatIsRefusedIsForgotten(face: Face) =
        onServer(face) { value, server ->
            assertThrows(InvalidArgumentException::class.java) {
                runBlocking { value.update(0.minutes) { "b".encodeToByteArray() } }
            }
            assertEquals("a", server.bystander.get(KEY))
            assertEquals(0, kept())
        }

    @ParameterizedTest
    @EnumSource
    fun anUpdateCancelledInItsFunctionWritesNothing(kind: ServerKind) {
        val server = plantedServer(kind)
        runBlocking(Dispatchers.Default) {
            Tallylock.connect(server.url, PATIENT).use { client ->
                val entered = CompletableDeferred<Unit>()
                val updating =
                    launch {
                        client.value(KEY).update(15.minutes) {
                            entered.complete(Unit)
                            awaitCancellation()
                        }
                    }
                entered.await()
                assertEquals(1, kept())
                updating.cancelAndJoin()
                assertEquals(0, kept())
            }
        }
        assertEquals("a", server.bystander.get(KEY))
    }

    @ParameterizedTest
    @EnumSource
    fun anUpdateCancelledWhileItReadsKeepsNothing(kind: ServerKind) {
        val server = plantedServer(kind)
        FaultProxy(server).use { proxy ->
            runBlocking(Dispatchers.Default) {
                Tallylock.connect(proxy.url, PATIENT).use { client ->
                    proxy.holdMatching(KEY)
                    val updating = launch { client.value(KEY).update(15.minutes) { error("it was entered") } }
                    proxy.awaitHeld(1)
                    updating.cancelAndJoin()
                    proxy.go()
                    // In the order in which they were sent: then the outcome of the first has come too.
                    assertEquals("a", client.value(KEY).get()?.decodeToString())
                    eventually { kept() == 0 }
                }
            }
        }
        assertEquals("a", server.bystander.get(KEY))
    }

    @ParameterizedTest
    @EnumSource
    fun anUpdateCancelledAsItIsOvertakenKeepsNothing(kind: ServerKind) {
        val server = plantedServer(kind)
        val others = receivers()
        FaultProxy(server).use { proxy ->
            runBlocking(Dispatchers.Default) {
                Tallylock.connect(proxy.url, PATIENT).use { client ->
                    val armed = CompletableDeferred<Unit>()
                    val updating =
                        launch {
                            client.value(KEY).update(15.minutes) {
                                server.plant(KEY, "b")
                                proxy.holdMatching(KEY)
                                armed.complete(Unit)
                                "c".encodeToByteArray()
                            }
                        }
                    armed.await()
                    proxy.awaitHeld(1)
                    updating.cancelAndJoin()
                    proxy.go()
                }
                // Closing lets the offer run to its end, and its outcome is the last that comes.
                eventually { (receivers() - others).isEmpty() }
                assertEquals(0, kept())
            }
        }
        assertEquals("b", server.bystander.get(KEY))
    }

    private fun onServer(
        face: Face,
        test: suspend (value: FaceValue, server: TestServer) -> Unit,
    ) {
        val server = plantedServer(ServerKind.Valkey)
        runBlocking { face.connect(server.url, PATIENT).use { client -> test(client.value(KEY), server) } }
    }

    private fun plantedServer(kind: ServerKind): TestServer = TestServer.empty(kind).apply { plant(KEY, "a") }

    /** How many of the values that were read since this test began are kept. Ids of all kinds come from one count. */
    private fun kept(): Int = (before..newId()).count(::isKept)

    private fun isKept(update: ULong): Boolean =
        try {
            updatePresent(update)
            true
        } catch (_: CallException) {
            false
        }

    private fun newId(): ULong = openClient("memory://", null, null, true, false).also(::closeClient)

    private fun receivers(): Set<Thread> =
        Thread
            .getAllStackTraces()
            .keys
            .filter { it.name.startsWith("tallylock-completions-") }
            .toSet()

    /** A coroutine's exception may arrive as a copy with the one that was thrown as its cause. */
    private fun Throwable.rootCause(): Throwable = generateSequence(this) { it.cause }.last()

    private companion object {
        // A machine that is busy elsewhere may stall for seconds.
        val PATIENT = 1.minutes
        const val KEY = "session:42:ctx"
    }
}
