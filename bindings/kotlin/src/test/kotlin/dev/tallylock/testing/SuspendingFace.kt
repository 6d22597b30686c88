package dev.tallylock.testing

import dev.tallylock.Client
import dev.tallylock.Counter
import dev.tallylock.Expiry
import dev.tallylock.Lease
import dev.tallylock.Lock
import dev.tallylock.Memory
import dev.tallylock.Value
import kotlin.time.Duration

/** The suspending face. */
class SuspendingFace(val client: Client) :
    FaceClient,
    AutoCloseable by client {
    override val memory: FaceMemory?
        get() = client.memory?.let(::SuspendingMemory)

    override fun counter(
        key: String,
        ttl: Duration,
        expiry: Expiry?,
    ): FaceCounter {
        val counter = if (expiry == null) client.counter(key, ttl) else client.counter(key, ttl, expiry)
        return SuspendingCounter(counter)
    }

    override fun value(key: String): FaceValue = SuspendingValue(client.value(key))

    override fun lock(
        key: String,
        ttl: Duration,
    ): FaceLock = SuspendingLock(client.lock(key, ttl))
}

private class SuspendingCounter(private val counter: Counter) : FaceCounter {
    override suspend fun add(amount: Long) = counter.add(amount)

    override suspend fun read() = counter.read()

    override suspend fun drain() = counter.drain()

    override suspend fun finish() = counter.finish()
}

private class SuspendingValue(private val value: Value) : FaceValue {
    override suspend fun get() = value.get()

    override suspend fun replaceIfPresent(
        value: ByteArray,
        ttl: Duration,
    ) = this.value.replaceIfPresent(value, ttl)

    override suspend fun touch(ttl: Duration) = value.touch(ttl)

    override suspend fun compareAndSet(
        expected: ByteArray,
        value: ByteArray,
        ttl: Duration,
    ) = this.value.compareAndSet(expected, value, ttl)
}

private class SuspendingLock(private val lock: Lock) : FaceLock {
    override suspend fun acquire(wait: Duration?): FaceLease =
        SuspendingLease(if (wait == null) lock.acquire() else lock.acquire(wait))

    override suspend fun withLock(
        wait: Duration?,
        body: suspend (FaceLease) -> Unit,
    ) {
        if (wait == null) {
            lock.withLock { body(SuspendingLease(it)) }
        } else {
            lock.withLock(wait) { body(SuspendingLease(it)) }
        }
    }
}

private class SuspendingLease(private val lease: Lease) : FaceLease {
    override val fence get() = lease.fence
    override val remaining get() = lease.remaining
    override val isValid get() = lease.isValid

    override fun ensure(margin: Duration) = lease.ensure(margin)

    override suspend fun extend(ttl: Duration?) = if (ttl == null) lease.extend() else lease.extend(ttl)

    override suspend fun release() = lease.release()
}

private class SuspendingMemory(private val memory: Memory) : FaceMemory {
    override fun advance(duration: Duration) = memory.advance(duration)

    override fun keys() = memory.keys().map { Found(it.key, it.value, it.ttl) }

    override fun put(
        key: ByteArray,
        value: ByteArray,
        ttl: Duration?,
    ) = memory.put(key, value, ttl)

    override fun putOtherType(
        key: ByteArray,
        ttl: Duration?,
    ) = memory.putOtherType(key, ttl)

    override fun remove(key: String) = memory.remove(key)

    override fun loseNextReply() = memory.loseNextReply()
}
