package dev.tallylock

import dev.tallylock.ffi.memoryAdvance
import dev.tallylock.ffi.memoryForgetScripts
import dev.tallylock.ffi.memoryKeys
import dev.tallylock.ffi.memoryLoseNextReply
import dev.tallylock.ffi.memoryPut
import dev.tallylock.ffi.memoryPutOtherType
import dev.tallylock.ffi.memoryRemove
import dev.tallylock.internal.Session
import dev.tallylock.internal.lending
import dev.tallylock.internal.toMicros
import dev.tallylock.internal.toUtf8
import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds

/**
 * The server in memory as tests steer it: the passing of time, other programs' writes, and faults, at will. Got from
 * [Client.memory].
 *
 * Its clock stands still until [advance] moves it; but when all callers wait for a lock, it jumps to the next moment at
 * which one of them has something to do. Each function throws [ClosedException] once the client is closed.
 */
public class Memory internal constructor(private val session: Session) {
    /**
     * Lets time pass.
     *
     * @param duration 0 to 10 years, rounded up to milliseconds
     * @throws InvalidArgumentException if it is out of bounds
     */
    public fun advance(duration: Duration): Unit = session.call { client -> memoryAdvance(client, duration.toMicros()) }

    /**
     * Lists what is there.
     *
     * @return every live key, ordered
     */
    public fun keys(): List<MemoryKey> =
        session.call(::memoryKeys).map { MemoryKey(it.key, it.value, it.ttlUs?.microseconds) }

    /**
     * Puts a text there, as another program would.
     *
     * @param key the key, any bytes
     * @param value the text, any bytes
     * @param ttl 1 ms to 10 years; `null` for none
     * @throws InvalidArgumentException if [ttl] is out of bounds
     */
    public fun put(
        key: ByteArray,
        value: ByteArray,
        ttl: Duration?,
    ): Unit = session.call { client -> lending { memoryPut(client, lend(key), lend(value), ttl?.toMicros()) } }

    /** The same with the UTF-8 of texts. */
    public fun put(
        key: String,
        value: String,
        ttl: Duration?,
    ): Unit = put(key.toUtf8(), value.toUtf8(), ttl)

    /**
     * Puts a key there that is no string, as another program would.
     *
     * @param key the key, any bytes
     * @param ttl 1 ms to 10 years; `null` for none
     * @throws InvalidArgumentException if [ttl] is out of bounds
     */
    public fun putOtherType(
        key: ByteArray,
        ttl: Duration?,
    ): Unit = session.call { client -> lending { memoryPutOtherType(client, lend(key), ttl?.toMicros()) } }

    /** The same with the UTF-8 of a text. */
    public fun putOtherType(
        key: String,
        ttl: Duration?,
    ): Unit = putOtherType(key.toUtf8(), ttl)

    /** Removes a key, as another program would. */
    public fun remove(key: ByteArray): Unit = session.call { client -> lending { memoryRemove(client, lend(key)) } }

    /** The same with the UTF-8 of a text. */
    public fun remove(key: String): Unit = remove(key.toUtf8())

    /** Executes the next call and loses its reply. */
    public fun loseNextReply(): Unit = session.call(::memoryLoseNextReply)

    /** Forgets all scripts, as a server does that is restarted. */
    public fun forgetScripts(): Unit = session.call(::memoryForgetScripts)
}

/**
 * A key of a server in memory.
 *
 * @property key its name
 * @property value its text; `null` for a key of another type
 * @property ttl what it has left to live; `null` for a key that has no TTL
 */
public class MemoryKey internal constructor(
    public val key: ByteArray,
    public val value: ByteArray?,
    public val ttl: Duration?,
)
