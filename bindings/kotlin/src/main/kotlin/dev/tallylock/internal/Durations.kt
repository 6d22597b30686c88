package dev.tallylock.internal

import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.toKotlinDuration
import java.time.Duration as JavaDuration

/**
 * Whole microseconds, as durations cross the boundary. What is less is rounded away from zero, so that neither a very
 * short nor a negative duration is taken for none; what is beyond the range of a `Long` is its end, which no call
 * accepts.
 */
internal fun Duration.toMicros(): Long {
    val whole = inWholeMicroseconds
    val rest = if (isFinite()) this - whole.microseconds else Duration.ZERO
    return when {
        rest.isPositive() -> whole + 1
        rest.isNegative() -> whole - 1
        else -> whole
    }
}

/** The same for Java's durations. */
internal fun JavaDuration.toMicros(): Long = toKotlinDuration().toMicros()
