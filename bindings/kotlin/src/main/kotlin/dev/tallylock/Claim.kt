package dev.tallylock

import dev.tallylock.internal.toText
import kotlin.time.Duration

/**
 * What was taken from a counter under a claim's id.
 *
 * @property amount what was taken
 * @property state what has become of the claim since
 */
public data class Claim(
    public val amount: Long,
    public val state: ClaimState,
)

/** What has become of a claim. */
public enum class ClaimState {
    /** It was neither committed nor aborted yet. */
    Open,

    /** It was billed. */
    Committed,

    /** Its amount was given back. */
    Aborted,
}

/**
 * A claim that was neither committed nor aborted yet, as [Counter.claims] lists it.
 *
 * @property id its id
 * @property amount what it has taken
 * @property remaining how long it is kept yet, after which its amount is lost; `null` if it has no TTL
 */
public class OpenClaim internal constructor(
    public val id: ByteArray,
    public val amount: Long,
    public val remaining: Duration?,
) {
    /**
     * The id as a text.
     *
     * @throws IllegalStateException if it is no UTF-8
     */
    public val idText: String
        get() = id.toText()
}
