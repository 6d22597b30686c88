package dev.tallylock

import kotlin.time.Duration
import kotlin.time.toKotlinDuration
import java.time.Duration as JavaDuration

/** Whether and when a lease is renewed in the background while it is held. */
public sealed class Renewal {
    /** A third of its TTL after it was given that: the default. */
    public data object Default : Renewal()

    /** Not at all: it ends with its TTL, unless it is extended. */
    public data object Off : Renewal()

    /**
     * So long after it was given its TTL.
     *
     * @property interval 1 ms to half of the TTL
     */
    public data class Every(public val interval: Duration) : Renewal()

    public companion object {
        /**
         * [Every] for Java.
         *
         * @param interval 1 ms to half of the TTL
         */
        @JvmStatic
        public fun every(interval: JavaDuration): Renewal = Every(interval.toKotlinDuration())
    }
}
