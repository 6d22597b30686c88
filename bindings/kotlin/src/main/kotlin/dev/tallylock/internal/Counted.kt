package dev.tallylock.internal

import dev.tallylock.Losses
import dev.tallylock.Metrics
import kotlin.time.Duration.Companion.microseconds

/** What a client has counted, as the native library's module `metrics` lays it out: read in that order. */
internal fun ByteArray.toMetrics(): Metrics =
    Packed(this).run {
        Metrics(
            granted = long(),
            busy = long(),
            cancelled = long(),
            failed = long(),
            attempts = long(),
            waited = long().microseconds,
            longestWait = long().microseconds,
            adopted = long(),
            released = long(),
            transferred = long(),
            abandoned = long(),
            lost = Losses(expired = long(), takenOver = long(), unreachable = long()),
            held = long().microseconds,
            longestHold = long().microseconds,
            renewals = long(),
            failedRenewals = long(),
            smallestMargin = long().takeIf { it >= 0 }?.microseconds,
            stolen = long(),
            healed = long(),
        )
    }
