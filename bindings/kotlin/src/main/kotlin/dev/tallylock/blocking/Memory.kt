package dev.tallylock.blocking

import java.time.Duration
import kotlin.time.toJavaDuration
import kotlin.time.toKotlinDuration
import dev.tallylock.Memory as SuspendingMemory
import dev.tallylock.MemoryKey as SuspendingMemoryKey

/** [dev.tallylock.Memory] with Java's durations: the server in memory as tests steer it. Got from [Client.memory]. */
public class Memory internal constructor(private val memory: SuspendingMemory) {
    /**
     * Lets time pass.
     *
     * @param duration 0 to 10 years, rounded up to milliseconds
     * @throws dev.tallylock.InvalidArgumentException if it is out of bounds
     */
    public fun advance(duration: Duration): Unit = memory.advance(duration.toKotlinDuration())

    /**
     * Lists what is there.
     *
     * @return every live key, ordered
     */
    public fun keys(): List<MemoryKey> = memory.keys().map(::MemoryKey)

    /**
     * Puts a text there, as another program would.
     *
     * @param key the key, any bytes
     * @param value the text, any bytes
     * @param ttl 1 ms to 10 years; `null` for none
     * @throws dev.tallylock.InvalidArgumentException if [ttl] is out of bounds
     */
    public fun put(
        key: ByteArray,
        value: ByteArray,
        ttl: Duration?,
    ): Unit = memory.put(key, value, ttl?.toKotlinDuration())

    /** The same with the UTF-8 of texts. */
    public fun put(
        key: String,
        value: String,
        ttl: Duration?,
    ): Unit = memory.put(key, value, ttl?.toKotlinDuration())

    /**
     * Puts a key there that is no string, as another program would.
     *
     * @param key the key, any bytes
     * @param ttl 1 ms to 10 years; `null` for none
     * @throws dev.tallylock.InvalidArgumentException if [ttl] is out of bounds
     */
    public fun putOtherType(
        key: ByteArray,
        ttl: Duration?,
    ): Unit = memory.putOtherType(key, ttl?.toKotlinDuration())

    /** The same with the UTF-8 of a text. */
    public fun putOtherType(
        key: String,
        ttl: Duration?,
    ): Unit = memory.putOtherType(key, ttl?.toKotlinDuration())

    /** Removes a key, as another program would. */
    public fun remove(key: ByteArray): Unit = memory.remove(key)

    /** The same with the UTF-8 of a text. */
    public fun remove(key: String): Unit = memory.remove(key)

    /** Executes the next call and loses its reply. */
    public fun loseNextReply(): Unit = memory.loseNextReply()

    /** Forgets all scripts, as a server does that is restarted. */
    public fun forgetScripts(): Unit = memory.forgetScripts()
}

/**
 * A key of a server in memory.
 *
 * @property key its name
 * @property value its text; `null` for a key of another type
 * @property ttl what it has left to live; `null` for a key that has no TTL
 */
public class MemoryKey internal constructor(found: SuspendingMemoryKey) {
    public val key: ByteArray = found.key
    public val value: ByteArray? = found.value
    public val ttl: Duration? = found.ttl?.toJavaDuration()
}
