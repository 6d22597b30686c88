package dev.tallylock.internal

import dev.tallylock.ClosedException
import dev.tallylock.Expiry
import dev.tallylock.Flushed
import dev.tallylock.Refused
import dev.tallylock.TallylockException
import dev.tallylock.ffi.MeterSettings
import dev.tallylock.ffi.meterClose
import dev.tallylock.ffi.meterFree
import dev.tallylock.ffi.meterTakeRefused
import dev.tallylock.ffi.meterTrouble
import dev.tallylock.ffi.submitMeterClose
import dev.tallylock.ffi.submitMeterFlush
import dev.tallylock.ffi.submitMeterOpen
import java.nio.file.Path
import java.util.concurrent.atomic.AtomicLong

/** What the suspending and the blocking face of a meter have in common. Freed when this object is collected. */
internal class MeterHandle private constructor(
    val session: Session,
    private val id: MeterId,
) {
    fun add(
        key: ByteArray,
        amount: Long,
    ): Unit = id.call { meter -> DirectCalls.meterAdd(meter, key, amount) }

    inline fun flush(await: MeterHandle.(submit: Submit) -> Outcome): Flushed =
        await { client, ticket -> id.call { meter -> submitMeterFlush(client, ticket, meter) } }.toBytes().toFlushed()

    inline fun close(await: MeterHandle.(submit: Submit) -> Outcome): Flushed =
        try {
            await { client, ticket -> id.call { meter -> submitMeterClose(client, ticket, meter) } }
                .toBytes()
                .toFlushed()
        } catch (_: ClosedException) {
            // So is its client: nothing can be sent, and this says what that means for what is held.
            id.call(::meterClose).toFlushed()
        }

    fun takeRefused(): List<Refused> = id.call(::meterTakeRefused).toRefused()

    fun trouble(): TallylockException? = id.call(::meterTrouble).toTrouble()

    companion object {
        private val nextId = AtomicLong(Long.MIN_VALUE)

        /** Makes a meter in the background; if the coroutine is cancelled meanwhile, there is none. */
        suspend fun open(
            session: Session,
            settings: MeterSettings,
        ): MeterHandle {
            val opened =
                session.awaitOrLeave(
                    { client, ticket -> submitMeterOpen(client, ticket, null, settings) },
                    unseen = { if (it is Outcome.Integer) meterFree(it.value.toULong()) },
                )
            return MeterHandle(session, MeterId(opened.toLong().toULong()))
        }

        /** Makes a meter and parks the thread meanwhile; if it is interrupted, there is none. */
        fun openParked(
            session: Session,
            settings: MeterSettings,
        ): MeterHandle {
            // Chosen here, so that it can be freed however far the opening came.
            val id = nextId.getAndIncrement().toULong()
            try {
                session.awaitParked { client, ticket -> submitMeterOpen(client, ticket, id, settings) }.toLong()
            } catch (failure: Throwable) {
                meterFree(id)
                throw failure
            }
            return MeterHandle(session, MeterId(id))
        }
    }
}

/** Submits a call of this client under this ticket. */
internal typealias Submit = (client: ULong, ticket: ULong) -> Unit

/** What a meter is made with, as it crosses the boundary; `null` is the default that all languages share. */
internal fun meterSettings(
    ttlMicros: Long,
    expiry: Expiry,
    intervalMicros: Long?,
    maxUnits: Long?,
    maxCounters: Long?,
    rememberMicros: Long?,
    journal: Path?,
): MeterSettings =
    MeterSettings(
        ttlUs = ttlMicros,
        fixed = expiry == Expiry.Fixed,
        intervalUs = intervalMicros,
        maxUnits = maxUnits,
        maxCounters = maxCounters,
        rememberUs = rememberMicros,
        journal = journal?.toString()?.toUtf8(),
    )

// Results, as the native library's module `meter` lays them out.

private fun ByteArray.toFlushed(): Flushed = Packed(this).run { Flushed(count(), count(), count(), count()) }

private fun ByteArray.toRefused(): List<Refused> =
    Packed(this).all { Refused(bytes(), long(), failure().toException()) }

private fun ByteArray.toTrouble(): TallylockException? =
    Packed(this).run { if (hasMore()) failure().toException() else null }

/** A number without a sign. */
private fun Packed.count(): Long = long().let { if (it < 0) Long.MAX_VALUE else it }
