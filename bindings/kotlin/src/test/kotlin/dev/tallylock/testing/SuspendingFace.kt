package dev.tallylock.testing

import dev.tallylock.Client
import dev.tallylock.Counter
import dev.tallylock.Entry
import dev.tallylock.Expiry
import dev.tallylock.Guarded
import dev.tallylock.Lease
import dev.tallylock.LeaseState
import dev.tallylock.Lock
import dev.tallylock.Memory
import dev.tallylock.Meter
import dev.tallylock.Metrics
import dev.tallylock.Redlock
import dev.tallylock.Renewal
import dev.tallylock.Scan
import dev.tallylock.Value
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.toList
import java.nio.file.Path
import kotlin.time.Duration

/** The suspending face. */
class SuspendingFace(val client: Client) :
    FaceClient,
    AutoCloseable by client {
    override val memory: FaceMemory?
        get() = client.memory?.let(::SuspendingMemory)

    override val stolen: Long
        get() = client.stolen

    override fun metrics(): Metrics = client.metrics()

    override fun counter(
        key: String,
        ttl: Duration,
        expiry: Expiry?,
    ): FaceCounter {
        val counter = if (expiry == null) client.counter(key, ttl) else client.counter(key, ttl, expiry)
        return SuspendingCounter(counter)
    }

    override fun value(key: String): FaceValue = SuspendingValue(client.value(key))

    override fun guarded(key: String): FaceGuarded = SuspendingGuarded(client.guarded(key))

    override fun lock(
        key: String,
        ttl: Duration,
        renewal: Renewal,
        maxHold: Duration?,
    ): FaceLock = SuspendingLock(client.lock(key, ttl, renewal, maxHold))

    override suspend fun meter(
        ttl: Duration,
        interval: Duration,
        maxCounters: Long?,
        remember: Duration?,
        journal: Path?,
    ): FaceMeter =
        SuspendingMeter(
            client.meter(
                ttl,
                interval = interval,
                maxCounters = maxCounters,
                remember = remember,
                journal = journal,
            ),
        )

    override suspend fun addMany(entries: List<Entry>) = client.addMany(entries)

    override suspend fun scan(pattern: String) = client.scan(pattern).totals()

    override suspend fun expiring(
        pattern: String,
        within: Duration,
    ) = client.expiring(pattern, within).totals()

    private suspend fun Scan.totals() = map { Listed(it.key.decodeToString(), it.total) }.toList()
}

class SuspendingRedlock(val redlock: Redlock) :
    FaceRedlock,
    AutoCloseable by redlock {
    override fun lock(
        key: String,
        ttl: Duration,
        renewal: Renewal,
    ): FaceLock = SuspendingLock(redlock.lock(key, ttl, renewal))
}

private class SuspendingMeter(private val meter: Meter) : FaceMeter {
    override val trouble get() = meter.trouble

    override fun add(
        key: String,
        amount: Long,
    ) = meter.add(key, amount)

    override fun add(
        key: ByteArray,
        amount: Long,
    ) = meter.add(key, amount)

    override suspend fun flush() = meter.flush()

    override fun takeRefused() = meter.takeRefused()

    override suspend fun close() {
        meter.close()
    }

    override suspend fun use(body: suspend (FaceMeter) -> Unit) = meter.use { body(this@SuspendingMeter) }
}

private class SuspendingCounter(private val counter: Counter) : FaceCounter {
    override suspend fun add(amount: Long) = counter.add(amount)

    override suspend fun add(
        amount: Long,
        id: String,
        remember: Duration?,
    ) = if (remember == null) counter.add(amount, id) else counter.add(amount, id, remember)

    override fun entry(
        amount: Long,
        id: String?,
    ) = if (id == null) counter.entry(amount) else counter.entry(amount, id)

    override suspend fun read() = counter.read()

    override suspend fun drain(fence: Long?) = if (fence == null) counter.drain() else counter.drain(fence)

    override suspend fun finish() = counter.finish()

    override suspend fun claim(
        id: String,
        fence: Long?,
    ) = if (fence == null) counter.claim(id) else counter.claim(id, fence)

    override suspend fun commit(
        id: String,
        amount: Long,
    ) = counter.commit(id, amount)

    override suspend fun abort(
        id: String,
        fence: Long?,
    ) = if (fence == null) counter.abort(id) else counter.abort(id, fence)

    override suspend fun claims() = counter.claims().map { Listed(it.idText, it.amount) }
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

    override suspend fun update(
        ttl: Duration,
        change: suspend (ByteArray) -> ByteArray,
    ) = value.update(ttl, change)
}

private class SuspendingGuarded(private val guarded: Guarded) : FaceGuarded {
    override suspend fun set(
        value: ByteArray,
        fence: Long,
        ttl: Duration,
    ) = guarded.set(value, fence, ttl)

    override suspend fun delete(fence: Long) = guarded.delete(fence)
}

private class SuspendingLock(private val lock: Lock) : FaceLock {
    override suspend fun inspect() = lock.inspect()?.run { FaceHolder(token, label, remaining, fence) }

    override suspend fun steal(
        expectedToken: ByteArray,
        reason: String,
    ) = lock.steal(expectedToken, reason)

    override suspend fun acquire(wait: Duration?): FaceLease =
        SuspendingLease(if (wait == null) lock.acquire() else lock.acquire(wait))

    override suspend fun adopt(token: String): FaceLease = SuspendingLease(lock.adopt(token))

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
    override val state get() = lease.state.value

    override suspend fun awaitEnd() = lease.state.first { it != LeaseState.Held }

    override fun ensure(margin: Duration) = lease.ensure(margin)

    override suspend fun verify(margin: Duration) = lease.verify(margin)

    override suspend fun extend(ttl: Duration?) = if (ttl == null) lease.extend() else lease.extend(ttl)

    override suspend fun release() = lease.release()

    override suspend fun transfer() = lease.transfer()
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
