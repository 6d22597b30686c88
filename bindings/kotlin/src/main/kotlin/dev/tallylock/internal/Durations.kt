package dev.tallylock.internal

import dev.tallylock.Renewal
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

/** How long a keyed add is remembered; 0 for the default, which zero itself must not be taken for: it is refused. */
internal fun Duration?.toRememberMicros(): Long = if (this == null) 0 else toMicros().let { if (it == 0L) 1 else it }

/**
 * After how long a lease is renewed: 0 for the default, -1 for not at all, for which no interval must be taken.
 *
 * @throws dev.tallylock.InvalidArgumentException if the interval is none
 */
internal fun Renewal.toMicros(key: NativeBytes): Long =
    when (this) {
        Renewal.Default -> 0
        Renewal.Off -> -1
        is Renewal.Every ->
            interval.toMicros().also {
                if (it <=
                    0
                ) {
                    throw invalidArgument(key.toName(), "a lease is renewed after 1 ms at least, not $interval")
                }
            }
    }

/**
 * For how long a lease is renewed: 0 for as long as it is held, for which no time must be taken.
 *
 * @throws dev.tallylock.InvalidArgumentException if it is 0
 */
internal fun Long?.orUnbounded(key: NativeBytes): Long {
    if (this == 0L) throw invalidArgument(key.toName(), "a lease is held for 1 ms at least, not for 0 ms")
    return this ?: 0
}

/**
 * How soon a counter must end to be found; a negative number would be taken for no bound.
 *
 * @throws dev.tallylock.InvalidArgumentException if it is negative
 */
internal fun Duration.toWithinMicros(): Long {
    if (isNegative()) throw invalidArgument(null, "within must be at least 0 ms, not $this")
    return toMicros()
}

/** Every counter, however long it has to live. */
internal const val NO_BOUND: Long = -1
