package dev.tallylock.testing

import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

/** What a test is run on. */
data class Setup(
    val face: Face,
    val kind: ServerKind,
) {
    companion object {
        /** Both faces on both servers, for a parameterized test. */
        @JvmStatic
        fun all(): List<Setup> = Face.entries.flatMap { face -> ServerKind.entries.map { Setup(face, it) } }
    }
}

/** Waits until [condition] holds, and fails after [within]. */
fun eventually(
    within: Duration = 60.seconds,
    condition: () -> Boolean,
) {
    val started = TimeSource.Monotonic.markNow()
    while (!condition()) {
        check(started.elapsedNow() < within) { "it has not come true within $within" }
        Thread.sleep(POLL_MILLIS)
    }
}

private const val POLL_MILLIS = 5L
