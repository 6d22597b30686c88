package dev.tallylock.internal

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import kotlin.time.Duration
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.nanoseconds
import kotlin.time.Duration.Companion.seconds
import java.time.Duration as JavaDuration

class DurationsTest {
    @Test
    fun wholeMicrosecondsAreExact() {
        assertEquals(30_000_000, 30.seconds.toMicros())
        assertEquals(-1, (-1).microseconds.toMicros())
        assertEquals(315_360_000_000_000, 3650.days.toMicros())
        assertEquals(30_000_000, JavaDuration.ofSeconds(30).toMicros())
    }

    @Test
    fun aRestIsRoundedAwayFromZero() {
        assertEquals(1, 1.nanoseconds.toMicros())
        assertEquals(-1, (-1).nanoseconds.toMicros())
        assertEquals(1_001, 1_000_001.nanoseconds.toMicros())
        assertEquals(1, JavaDuration.ofNanos(1).toMicros())
        assertEquals(-1, JavaDuration.ofNanos(-1).toMicros())
    }

    @Test
    fun whatIsOutOfRangeIsAtTheEndOfIt() {
        assertEquals(Long.MAX_VALUE, Duration.INFINITE.toMicros())
        assertEquals(Long.MIN_VALUE, (-Duration.INFINITE).toMicros())
        assertEquals(Long.MAX_VALUE, JavaDuration.ofSeconds(Long.MAX_VALUE).toMicros())
        assertEquals(Long.MIN_VALUE, JavaDuration.ofSeconds(Long.MIN_VALUE).toMicros())
    }
}
