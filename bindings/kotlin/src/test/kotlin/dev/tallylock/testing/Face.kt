package dev.tallylock.testing

import dev.tallylock.AddResult
import dev.tallylock.Added
import dev.tallylock.Claim
import dev.tallylock.Entry
import dev.tallylock.Expiry
import dev.tallylock.Tallylock
import kotlin.time.Duration
import kotlin.time.toJavaDuration

/**
 * The two faces of tallylock for the JVM under one name, so that a test can be run on both. Adds nothing of its own.
 */
enum class Face {
    Suspending {
        override suspend fun connect(
            url: String,
            timeout: Duration?,
        ): FaceClient = SuspendingFace(Tallylock.connect(url, timeout))
    },
    Blocking {
        override suspend fun connect(
            url: String,
            timeout: Duration?,
        ): FaceClient = BlockingFace(Tallylock.connectBlocking(url, timeout?.toJavaDuration()))
    }, ;

    abstract suspend fun connect(
        url: String,
        timeout: Duration? = null,
    ): FaceClient
}

interface FaceClient : AutoCloseable {
    val memory: FaceMemory?

    /** Without an expiry the face's default is used. */
    fun counter(
        key: String,
        ttl: Duration,
        expiry: Expiry? = null,
    ): FaceCounter

    fun value(key: String): FaceValue

    fun lock(
        key: String,
        ttl: Duration,
    ): FaceLock

    suspend fun addMany(entries: List<Entry>): List<AddResult>

    /** What is found, in the order in which it is. */
    suspend fun scan(pattern: String): List<Listed>

    suspend fun expiring(
        pattern: String,
        within: Duration,
    ): List<Listed>
}

interface FaceCounter {
    suspend fun add(amount: Long): Long

    /** Without a time to be remembered the face's default is used. */
    suspend fun add(
        amount: Long,
        id: String,
        remember: Duration? = null,
    ): Added

    fun entry(
        amount: Long,
        id: String? = null,
    ): Entry

    suspend fun read(): Long?

    /** Without a fence the face's default is used. */
    suspend fun drain(fence: Long? = null): Long?

    suspend fun finish(): Long?

    /** Without a fence the face's default is used. */
    suspend fun claim(
        id: String,
        fence: Long? = null,
    ): Claim?

    suspend fun commit(
        id: String,
        amount: Long,
    )

    suspend fun abort(id: String): Long

    suspend fun claims(): List<Listed>
}

/** A counter or an open claim that is listed: its key or its id, and what it holds. */
data class Listed(
    val name: String,
    val amount: Long,
)

interface FaceValue {
    suspend fun get(): ByteArray?

    suspend fun replaceIfPresent(
        value: ByteArray,
        ttl: Duration,
    ): Boolean

    suspend fun touch(ttl: Duration): Boolean

    suspend fun compareAndSet(
        expected: ByteArray,
        value: ByteArray,
        ttl: Duration,
    ): Boolean

    suspend fun update(
        ttl: Duration,
        change: suspend (ByteArray) -> ByteArray,
    ): ByteArray?
}

interface FaceLock {
    /** Without a wait the face's default is used. */
    suspend fun acquire(wait: Duration? = null): FaceLease

    /** Without a wait the face's default is used. */
    suspend fun withLock(
        wait: Duration?,
        body: suspend (FaceLease) -> Unit,
    )
}

interface FaceLease {
    val fence: Long
    val remaining: Duration
    val isValid: Boolean

    fun ensure(margin: Duration)

    /** Without a TTL the face's default is used. */
    suspend fun extend(ttl: Duration? = null)

    suspend fun release()
}

interface FaceMemory {
    fun advance(duration: Duration)

    fun keys(): List<Found>

    fun put(
        key: ByteArray,
        value: ByteArray,
        ttl: Duration?,
    )

    fun putOtherType(
        key: ByteArray,
        ttl: Duration?,
    )

    fun remove(key: String)

    fun loseNextReply()
}

/** A key that was found; [value] is `null` for another type than a string. */
class Found(
    val key: ByteArray,
    val value: ByteArray?,
    val ttl: Duration?,
)
