package dev.tallylock.internal

import dev.tallylock.AddResult
import dev.tallylock.Added
import dev.tallylock.Claim
import dev.tallylock.ClaimState
import dev.tallylock.CounterFound
import dev.tallylock.OpenClaim
import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds

// Results that have parts, as the native library's modules `claim`, `batch`, `scan` and `update` lay them out.

/** What a keyed add has given. */
internal fun ByteArray.toAdded(): Added = Packed(this).run { added(wasApplied = byte()) }

/** What a claim has given; `null` for nothing. */
internal fun ByteArray.toClaim(): Claim? =
    Packed(this).run {
        if (!hasMore()) return null
        val state =
            when (val number = byte()) {
                0 -> ClaimState.Open
                1 -> ClaimState.Committed
                2 -> ClaimState.Aborted
                else -> error("the native library sent a claim in the unknown state $number")
            }
        Claim(long(), state)
    }

/** The open claims of a counter. */
internal fun ByteArray.toOpenClaims(): List<OpenClaim> = Packed(this).all { OpenClaim(bytes(), long(), remaining()) }

/** What has become of the entries of a batch. */
internal fun ByteArray.toAddResults(): List<AddResult> =
    Packed(this).all {
        when (val kind = byte()) {
            0, 1 -> AddResult.Success(added(wasApplied = kind))
            2 -> AddResult.Failure(failure().toException())
            else -> error("the native library sent a result of the unknown kind $kind")
        }
    }

/** A page of a look through the counters. */
internal fun ByteArray.toPage(): Page =
    Packed(this).run {
        val next = text().ifEmpty { null }
        Page(all { CounterFound(bytes(), long(), remaining()) }, next)
    }

/** What has become of a value that was offered, by its number. */
internal fun Long.toOffered(): Offered =
    when (this) {
        0L -> Offered.Gone
        1L -> Offered.Written
        2L -> Offered.Overtaken
        else -> error("the native library sent the unknown answer $this to an offer")
    }

/** What has become of a value that was offered. */
internal enum class Offered { Gone, Written, Overtaken }

/**
 * A page of a look through the counters.
 *
 * @property counters what was found on it
 * @property next where the next page begins; `null` if this is the last
 */
internal class Page(
    val counters: List<CounterFound>,
    val next: String?,
)

private fun Packed.added(wasApplied: Int) = Added(long(), wasApplied == 1)

internal fun Packed.remaining(): Duration? = long().takeIf { it >= 0 }?.microseconds
