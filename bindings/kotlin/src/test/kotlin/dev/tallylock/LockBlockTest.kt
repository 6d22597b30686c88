package dev.tallylock

import dev.tallylock.testing.Face
import dev.tallylock.testing.FaceMemory
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

/** `withLock`: how it ends, whatever its body does. */
class LockBlockTest {
    @ParameterizedTest
    @EnumSource
    fun theBodysExceptionIsThrownAndTheLockReleased(face: Face) =
        runBlocking {
            face.connect("memory://").use { client ->
                val raised = IllegalStateException("the body's own")
                val caught =
                    assertThrows(IllegalStateException::class.java) {
                        runBlocking { client.lock(KEY, 30.seconds).withLock(null) { throw raised } }
                    }
                assertSame(raised, caught)
                assertTrue(isFree(client.memory))
            }
        }

    @ParameterizedTest
    @EnumSource
    fun aFailedReleaseDoesNotHideTheBodysException(face: Face) =
        runBlocking {
            face.connect("memory://").use { client ->
                val raised = IllegalStateException("the body's own")
                val caught =
                    assertThrows(IllegalStateException::class.java) {
                        runBlocking {
                            client.lock(KEY, 30.seconds).withLock(null) {
                                client.memory?.remove(KEY)
                                throw raised
                            }
                        }
                    }
                assertSame(raised, caught)
                assertEquals(listOf(LostException::class), caught.suppressed.map { it::class })
            }
        }

    @ParameterizedTest
    @EnumSource
    fun aLeaseLostMeanwhileIsToldAfterTheBody(face: Face) =
        runBlocking {
            face.connect("memory://").use { client ->
                val lost =
                    assertThrows(LostException::class.java) {
                        runBlocking {
                            client.lock(KEY, 30.seconds).withLock(null) { client.memory?.advance(1.minutes) }
                        }
                    }
                assertEquals("expired", lost.reason)
                assertEquals(Applied.No, lost.applied)
            }
        }

    @Test
    fun aBodyThatIsCancelledReleasesTheLock() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                val entered = CompletableDeferred<Unit>()
                val working =
                    async {
                        client.lock(KEY, 30.seconds).withLock {
                            entered.complete(Unit)
                            awaitCancellation()
                        }
                    }
                entered.await()
                working.cancelAndJoin()
                assertTrue(client.memory!!.keys().none { it.key.decodeToString() == KEY })
            }
        }

    @Test
    fun theBodysResultIsReturned() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                val fence = client.lock(KEY, 30.seconds).withLock { it.fence }
                assertTrue(client.lock(KEY, 30.seconds).withLock { it.fence } > fence)
            }
        }

    @ParameterizedTest
    @EnumSource
    fun theClockOfTheMemoryJumpsWhenAllWait(face: Face) =
        runBlocking {
            face.connect("memory://").use { client ->
                client.lock(KEY, 30.seconds).acquire()
                val second = client.lock(KEY, 30.seconds).acquire(wait = 1.minutes)
                assertTrue(second.isValid)
                val busy =
                    assertThrows(BusyException::class.java) {
                        runBlocking { client.lock(KEY, 30.seconds).acquire(wait = 10.seconds) }
                    }
                assertEquals(KEY, busy.key)
            }
        }

    private fun isFree(memory: FaceMemory?): Boolean = memory!!.keys().none { it.key.decodeToString() == KEY }

    private companion object {
        const val KEY = "invoice:42"
    }
}
