package dev.tallylock.blocking

import java.time.Duration
import kotlin.time.toJavaDuration
import dev.tallylock.OpenClaim as SuspendingOpenClaim

/**
 * A claim that was neither committed nor aborted yet, as [Counter.claims] lists it.
 *
 * @property id its id
 * @property amount what it has taken
 * @property remaining how long it is kept yet, after which its amount is lost; `null` if it has no TTL
 */
public class OpenClaim internal constructor(private val found: SuspendingOpenClaim) {
    public val id: ByteArray = found.id
    public val amount: Long = found.amount
    public val remaining: Duration? = found.remaining?.toJavaDuration()

    /**
     * The id as a text.
     *
     * @throws IllegalStateException if it is no UTF-8
     */
    public val idText: String
        get() = found.idText
}
