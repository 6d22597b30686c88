package dev.tallylock.internal

import dev.tallylock.Tallylock
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import java.nio.ByteBuffer
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

/** What a native call has borrowed stays where it is until it returns, whatever the garbage collector does meanwhile. */
class LendingTest {
    @Test
    fun aClaimIsThatOfItsIdWhileGarbageIsCollected() =
        runBlocking {
            Tallylock.connect("memory://").use { client ->
                whileGarbageIsCollected {
                    forSomeTime { number ->
                        // A handle that nobody has any more once it is called.
                        client.counter("counter", 1.days).add(1)
                        val id = "the claim of number $number"
                        client.counter("counter", 1.days).claim(id)
                        client.counter("counter", 1.days).commit(id, 1)
                    }
                }
            }
        }

    @Test
    fun soItIsWhereTheCallingThreadDoesTheCall() =
        Tallylock.connectBlocking("memory://").use { client ->
            whileGarbageIsCollected {
                forSomeTime { number ->
                    val text = "the value of number $number".toByteArray()
                    client.memory!!.put("key $number".toByteArray(), text, null)
                    assertEquals(
                        text.decodeToString(),
                        client.value("key $number").get()?.decodeToString(),
                    )
                    client.memory!!.remove("key $number".toByteArray())
                }
            }
        }

    private inline fun whileGarbageIsCollected(test: () -> Unit) {
        val collector =
            Thread {
                while (!Thread.interrupted()) {
                    System.gc()
                    // What is freed is written over.
                    repeat(WRITES) { ByteBuffer.allocateDirect(32).putLong(-1).putLong(-1) }
                }
            }
        collector.start()
        try {
            test()
        } finally {
            collector.interrupt()
            collector.join()
        }
    }

    private inline fun forSomeTime(call: (number: Int) -> Unit) {
        val end = TimeSource.Monotonic.markNow() + TIME
        var number = 0
        while (end.hasNotPassedNow()) call(number++)
    }

    private companion object {
        // Without the loan, each of the two fails within 10 s as a rule.
        val TIME = 10.seconds
        const val WRITES = 200
    }
}
