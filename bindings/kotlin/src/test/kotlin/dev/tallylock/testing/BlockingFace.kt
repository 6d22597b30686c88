package dev.tallylock.testing

import dev.tallylock.Expiry
import dev.tallylock.blocking.Client
import dev.tallylock.blocking.Counter
import dev.tallylock.blocking.Lease
import dev.tallylock.blocking.Lock
import dev.tallylock.blocking.Memory
import dev.tallylock.blocking.Value
import kotlinx.coroutines.runBlocking
import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlin.time.toKotlinDuration

/** The blocking face. */
class BlockingFace(val client: Client) :
    FaceClient,
    AutoCloseable by client {
    override val memory: FaceMemory?
        get() = client.memory?.let(::BlockingMemory)

    override fun counter(
        key: String,
        ttl: Duration,
        expiry: Expiry?,
    ): FaceCounter {
        val javaTtl = ttl.toJavaDuration()
        return BlockingCounter(
            if (expiry ==
                null
            ) {
                client.counter(key, javaTtl)
            } else {
                client.counter(key, javaTtl, expiry)
            },
        )
    }

    override fun value(key: String): FaceValue = BlockingValue(client.value(key))

    override fun lock(
        key: String,
        ttl: Duration,
    ): FaceLock = BlockingLock(client.lock(key, ttl.toJavaDuration()))
}

private class BlockingCounter(private val counter: Counter) : FaceCounter {
    override suspend fun add(amount: Long) = counter.add(amount)

    override suspend fun read() = counter.read()

    override suspend fun drain() = counter.drain()

    override suspend fun finish() = counter.finish()
}

private class BlockingValue(private val value: Value) : FaceValue {
    override suspend fun get() = value.get()

    override suspend fun replaceIfPresent(
        value: ByteArray,
        ttl: Duration,
    ) = this.value.replaceIfPresent(value, ttl.toJavaDuration())

    override suspend fun touch(ttl: Duration) = value.touch(ttl.toJavaDuration())

    override suspend fun compareAndSet(
        expected: ByteArray,
        value: ByteArray,
        ttl: Duration,
    ) = this.value.compareAndSet(expected, value, ttl.toJavaDuration())
}

private class BlockingLock(private val lock: Lock) : FaceLock {
    override suspend fun acquire(wait: Duration?): FaceLease =
        BlockingLease(if (wait == null) lock.acquire() else lock.acquire(wait.toJavaDuration()))

    override suspend fun withLock(
        wait: Duration?,
        body: suspend (FaceLease) -> Unit,
    ) {
        if (wait == null) {
            lock.withLock { runBlocking { body(BlockingLease(it)) } }
        } else {
            lock.withLock(wait.toJavaDuration()) { runBlocking { body(BlockingLease(it)) } }
        }
    }
}

private class BlockingLease(private val lease: Lease) : FaceLease {
    override val fence get() = lease.fence
    override val remaining get() = lease.remaining.toKotlinDuration()
    override val isValid get() = lease.isValid

    override fun ensure(margin: Duration) = lease.ensure(margin.toJavaDuration())

    override suspend fun extend(ttl: Duration?) =
        if (ttl ==
            null
        ) {
            lease.extend()
        } else {
            lease.extend(ttl.toJavaDuration())
        }

    override suspend fun release() = lease.release()
}

private class BlockingMemory(private val memory: Memory) : FaceMemory {
    override fun advance(duration: Duration) = memory.advance(duration.toJavaDuration())

    override fun keys() = memory.keys().map { Found(it.key, it.value, it.ttl?.toKotlinDuration()) }

    override fun put(
        key: ByteArray,
        value: ByteArray,
        ttl: Duration?,
    ) = memory.put(key, value, ttl?.toJavaDuration())

    override fun putOtherType(
        key: ByteArray,
        ttl: Duration?,
    ) = memory.putOtherType(key, ttl?.toJavaDuration())

    override fun remove(key: String) = memory.remove(key)

    override fun loseNextReply() = memory.loseNextReply()
}
