package dev.tallylock.testing

import dev.tallylock.AddResult
import dev.tallylock.Added
import dev.tallylock.Claim
import dev.tallylock.Entry
import dev.tallylock.Expiry
import dev.tallylock.Flushed
import dev.tallylock.LeaseState
import dev.tallylock.Metrics
import dev.tallylock.Owner
import dev.tallylock.Refused
import dev.tallylock.Renewal
import dev.tallylock.Tallylock
import dev.tallylock.TallylockException
import java.nio.file.Path
import kotlin.time.Duration
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.minutes
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

        override suspend fun connectRedlock(
            urls: List<String>,
            timeout: Duration?,
            nodeTimeout: Duration?,
            rejoin: Boolean,
            owner: Owner,
        ): FaceRedlock = SuspendingRedlock(Tallylock.connectRedlock(urls, timeout, nodeTimeout, rejoin, owner))
    },
    Blocking {
        override suspend fun connect(
            url: String,
            timeout: Duration?,
        ): FaceClient = BlockingFace(Tallylock.connectBlocking(url, timeout?.toJavaDuration()))

        override suspend fun connectRedlock(
            urls: List<String>,
            timeout: Duration?,
            nodeTimeout: Duration?,
            rejoin: Boolean,
            owner: Owner,
        ): FaceRedlock =
            BlockingRedlock(
                Tallylock.connectRedlockBlocking(
                    urls,
                    timeout?.toJavaDuration(),
                    nodeTimeout?.toJavaDuration(),
                    rejoin,
                    owner,
                ),
            )
    }, ;

    /** Unless a test is about its time-out, no call is given up because the machine is busy. */
    abstract suspend fun connect(
        url: String,
        timeout: Duration? = 1.minutes,
    ): FaceClient

    abstract suspend fun connectRedlock(
        urls: List<String>,
        timeout: Duration? = null,
        nodeTimeout: Duration? = null,
        rejoin: Boolean = false,
        owner: Owner = Owner.HostAndPid,
    ): FaceRedlock
}

interface FaceRedlock : AutoCloseable {
    fun lock(
        key: String,
        ttl: Duration,
        renewal: Renewal = Renewal.Default,
    ): FaceLock
}

interface FaceClient : AutoCloseable {
    val memory: FaceMemory?

    /** How many locks were stolen. */
    val stolen: Long

    fun metrics(): Metrics

    /** Without an expiry the face's default is used. */
    fun counter(
        key: String,
        ttl: Duration,
        expiry: Expiry? = null,
    ): FaceCounter

    fun value(key: String): FaceValue

    fun guarded(key: String): FaceGuarded

    fun lock(
        key: String,
        ttl: Duration,
        renewal: Renewal = Renewal.Default,
        maxHold: Duration? = null,
    ): FaceLock

    /** A meter that flushes each hour, unless something else is said. */
    suspend fun meter(
        ttl: Duration,
        interval: Duration = 1.hours,
        maxCounters: Long? = null,
        remember: Duration? = null,
        journal: Path? = null,
    ): FaceMeter

    suspend fun addMany(entries: List<Entry>): List<AddResult>

    /** What is found, in the order in which it is. */
    suspend fun scan(pattern: String): List<Listed>

    suspend fun expiring(
        pattern: String,
        within: Duration,
    ): List<Listed>
}

interface FaceMeter {
    val trouble: TallylockException?

    fun add(
        key: String,
        amount: Long,
    )

    fun add(
        key: ByteArray,
        amount: Long,
    )

    suspend fun flush(): Flushed

    fun takeRefused(): List<Refused>

    suspend fun close()

    suspend fun use(body: suspend (FaceMeter) -> Unit)
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

    /** Without a fence the face's default is used. */
    suspend fun abort(
        id: String,
        fence: Long? = null,
    ): Long

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

interface FaceGuarded {
    suspend fun set(
        value: ByteArray,
        fence: Long,
        ttl: Duration,
    )

    suspend fun delete(fence: Long): Boolean
}

/** Who holds a lock. */
class FaceHolder(
    val token: ByteArray,
    val label: String?,
    val remaining: Duration?,
    val fence: Long?,
)

interface FaceLock {
    suspend fun inspect(): FaceHolder?

    suspend fun steal(
        expectedToken: ByteArray,
        reason: String,
    ): Long?

    /** Without a wait the face's default is used. */
    suspend fun acquire(wait: Duration? = null): FaceLease

    suspend fun adopt(token: String): FaceLease

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
    val state: LeaseState

    /** Waits until it is lost or let go of. */
    suspend fun awaitEnd(): LeaseState

    fun ensure(margin: Duration)

    suspend fun verify(margin: Duration)

    /** Without a TTL the face's default is used. */
    suspend fun extend(ttl: Duration? = null)

    suspend fun release()

    suspend fun transfer(): String
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
