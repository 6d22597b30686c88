package dev.tallylock.internal

import dev.tallylock.ClaimToBill
import dev.tallylock.SweepFailure
import dev.tallylock.SweepReport
import dev.tallylock.TallylockException
import dev.tallylock.ffi.SweepArguments
import dev.tallylock.ffi.checkSweeper
import dev.tallylock.ffi.submitSweepAbort
import dev.tallylock.ffi.submitSweepBegin
import dev.tallylock.ffi.submitSweepCommit
import dev.tallylock.ffi.submitSweepEnd
import dev.tallylock.ffi.submitSweepNext
import dev.tallylock.ffi.sweepAbandon
import dev.tallylock.ffi.sweepId
import dev.tallylock.ffi.sweepTotals
import java.math.BigInteger

// What the suspending and the blocking face of a sweeper have in common.

/** What a sweeper was told. */
internal class SweeperHandle(
    val session: Session,
    private val arguments: SweepArguments,
) {
    init {
        translated { checkSweeper(arguments) }
    }

    fun pass(): PassHandle = PassHandle(arguments)
}

/**
 * A pass: how its calls are submitted, and what it has come to. [abandon] must follow in the end, whatever becomes of it.
 */
internal class PassHandle(private val arguments: SweepArguments) {
    private val id = sweepId()
    private val failures = mutableListOf<SweepFailure>()

    /** What ended the pass before its end. */
    var error: TallylockException? = null

    fun begin(
        client: ULong,
        ticket: ULong,
    ): Unit = submitSweepBegin(client, ticket, id, arguments)

    fun next(
        client: ULong,
        ticket: ULong,
    ): Unit = submitSweepNext(client, ticket, id)

    fun commit(
        client: ULong,
        ticket: ULong,
    ): Unit = submitSweepCommit(client, ticket, id)

    fun abort(
        client: ULong,
        ticket: ULong,
    ): Unit = submitSweepAbort(client, ticket, id)

    fun end(
        client: ULong,
        ticket: ULong,
    ): Unit = submitSweepEnd(client, ticket, id)

    /** Forgets the pass; its lock is released in the background, unless that was done. */
    fun abandon(): Unit = sweepAbandon(id)

    /** What the pass has come to: a claim, or a key that cannot be billed, which is noted. */
    fun met(outcome: Outcome): Met {
        val packed = Packed(outcome.toBytes())
        if (!packed.hasMore()) return Met.End
        val kind = packed.byte()
        val key = packed.bytes()
        return when (kind) {
            0 -> Met.ToBill(ClaimToBill(key, packed.text(), packed.long()))
            1 -> {
                failures += SweepFailure(key, null, packed.failure().toException())
                Met.Unusable
            }
            else -> error("the native library sent a part of a sweep of the unknown kind $kind")
        }
    }

    /** Notes a claim that could not be billed. */
    fun failed(
        claim: ClaimToBill,
        cause: Exception,
    ) {
        failures += SweepFailure(claim.key, claim.claimId, cause)
    }

    fun report(): SweepReport {
        val totals = Packed(translated { sweepTotals(id) })
        return SweepReport(
            offered = totals.long(),
            resumed = totals.long(),
            committed = totals.long(),
            committedUnits = totals.bigInteger(),
            aborted = totals.long(),
            abortedUnits = totals.bigInteger(),
            leftOpen = totals.long(),
            unusable = totals.long(),
            failures = failures.toList(),
            error = error,
        )
    }
}

/** What a pass has come to. */
internal sealed interface Met {
    class ToBill(val claim: ClaimToBill) : Met

    data object Unusable : Met

    data object End : Met
}

/** The report of a pass that could not begin. */
internal fun neverBegun(error: TallylockException): SweepReport =
    SweepReport(0, 0, 0, BigInteger.ZERO, 0, BigInteger.ZERO, 0, 0, emptyList(), error)

/** What a sweeper is told, in the form that the native library takes. */
internal fun sweepArguments(
    pattern: ByteArray,
    ttlMicros: Long,
    lock: String,
    lockTtlMicros: Long,
    withinMicros: Long?,
    atLeast: Long?,
    waitMicros: Long,
): SweepArguments = SweepArguments(pattern, withinMicros, atLeast, ttlMicros, lock.toUtf8(), lockTtlMicros, waitMicros)

/** Logs what a pass could not bill, for a caller who looks at no report. */
internal fun log(report: SweepReport) {
    for (failure in report.failures) {
        val key = failure.key.decodeToString()
        val what = if (failure.claimId == null) "$key cannot be billed" else "${failure.claimId} on $key is open yet"
        LOGGER.log(System.Logger.Level.ERROR, what, failure.cause)
    }
    report.error?.let { LOGGER.log(System.Logger.Level.ERROR, "the pass ended before its end", it) }
}

private val LOGGER = System.getLogger("dev.tallylock.sweeper")
