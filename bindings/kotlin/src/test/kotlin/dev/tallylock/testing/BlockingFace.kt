package dev.tallylock.testing

import dev.tallylock.Entry
import dev.tallylock.Expiry
import dev.tallylock.LeaseState
import dev.tallylock.Metrics
import dev.tallylock.Renewal
import dev.tallylock.blocking.Client
import dev.tallylock.blocking.Counter
import dev.tallylock.blocking.Guarded
import dev.tallylock.blocking.Lease
import dev.tallylock.blocking.Lock
import dev.tallylock.blocking.Memory
import dev.tallylock.blocking.Meter
import dev.tallylock.blocking.Redlock
import dev.tallylock.blocking.Scan
import dev.tallylock.blocking.Value
import kotlinx.coroutines.future.await
import kotlinx.coroutines.runBlocking
import java.nio.file.Path
import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlin.time.toKotlinDuration

/** The blocking face. */
class BlockingFace(val client: Client) :
    FaceClient,
    AutoCloseable by client {
    override val memory: FaceMemory?
        get() = client.memory?.let(::BlockingMemory)

    override val stolen: Long
        get() = client.stolen

    override fun metrics(): Metrics =
        client.metrics().run {
            Metrics(
                granted = granted,
                busy = busy,
                cancelled = cancelled,
                failed = failed,
                attempts = attempts,
                waited = waited.toKotlinDuration(),
                longestWait = longestWait.toKotlinDuration(),
                adopted = adopted,
                released = released,
                transferred = transferred,
                abandoned = abandoned,
                lost = lost,
                held = held.toKotlinDuration(),
                longestHold = longestHold.toKotlinDuration(),
                renewals = renewals,
                failedRenewals = failedRenewals,
                smallestMargin = smallestMargin?.toKotlinDuration(),
                stolen = stolen,
                healed = healed,
            )
        }

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

    override fun guarded(key: String): FaceGuarded = BlockingGuarded(client.guarded(key))

    override fun lock(
        key: String,
        ttl: Duration,
        renewal: Renewal,
        maxHold: Duration?,
    ): FaceLock = BlockingLock(client.lock(key, ttl.toJavaDuration(), renewal, maxHold?.toJavaDuration()))

    override suspend fun meter(
        ttl: Duration,
        interval: Duration,
        maxCounters: Long?,
        remember: Duration?,
        journal: Path?,
    ): FaceMeter =
        BlockingMeter(
            client.meter(
                ttl.toJavaDuration(),
                interval = interval.toJavaDuration(),
                maxCounters = maxCounters,
                remember = remember?.toJavaDuration(),
                journal = journal,
            ),
        )

    override suspend fun addMany(entries: List<Entry>) = client.addMany(entries)

    override suspend fun scan(pattern: String) = client.scan(pattern).totals()

    override suspend fun expiring(
        pattern: String,
        within: Duration,
    ) = client.expiring(pattern, within.toJavaDuration()).totals()

    private fun Scan.totals() = map { Listed(it.key.decodeToString(), it.total) }
}

class BlockingRedlock(val redlock: Redlock) :
    FaceRedlock,
    AutoCloseable by redlock {
    override fun lock(
        key: String,
        ttl: Duration,
        renewal: Renewal,
    ): FaceLock = BlockingLock(redlock.lock(key, ttl.toJavaDuration(), renewal))
}

private class BlockingMeter(private val meter: Meter) : FaceMeter {
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

    override suspend fun use(body: suspend (FaceMeter) -> Unit) = meter.use { runBlocking { body(this@BlockingMeter) } }
}

private class BlockingCounter(private val counter: Counter) : FaceCounter {
    override suspend fun add(amount: Long) = counter.add(amount)

    override suspend fun add(
        amount: Long,
        id: String,
        remember: Duration?,
    ) = if (remember == null) counter.add(amount, id) else counter.add(amount, id, remember.toJavaDuration())

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

    override suspend fun update(
        ttl: Duration,
        change: suspend (ByteArray) -> ByteArray,
    ) = value.update(ttl.toJavaDuration()) { runBlocking { change(it) } }
}

private class BlockingGuarded(private val guarded: Guarded) : FaceGuarded {
    override suspend fun set(
        value: ByteArray,
        fence: Long,
        ttl: Duration,
    ) = guarded.set(value, fence, ttl.toJavaDuration())

    override suspend fun delete(fence: Long) = guarded.delete(fence)
}

private class BlockingLock(private val lock: Lock) : FaceLock {
    override suspend fun inspect() =
        lock.inspect()?.run { FaceHolder(token, label, remaining?.toKotlinDuration(), fence) }

    override suspend fun steal(
        expectedToken: ByteArray,
        reason: String,
    ) = lock.steal(expectedToken, reason)

    override suspend fun acquire(wait: Duration?): FaceLease =
        BlockingLease(if (wait == null) lock.acquire() else lock.acquire(wait.toJavaDuration()))

    override suspend fun adopt(token: String): FaceLease = BlockingLease(lock.adopt(token))

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
    override val state get() = lease.state

    override suspend fun awaitEnd(): LeaseState = lease.end.await()

    override fun ensure(margin: Duration) = lease.ensure(margin.toJavaDuration())

    override suspend fun verify(margin: Duration) = lease.verify(margin.toJavaDuration())

    override suspend fun extend(ttl: Duration?) =
        if (ttl ==
            null
        ) {
            lease.extend()
        } else {
            lease.extend(ttl.toJavaDuration())
        }

    override suspend fun release() = lease.release()

    override suspend fun transfer(): String = lease.transfer()
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
