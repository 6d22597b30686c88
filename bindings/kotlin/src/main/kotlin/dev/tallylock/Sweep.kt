package dev.tallylock

import dev.tallylock.internal.toText
import java.math.BigInteger

/**
 * A claim that a sweeper's callback is to bill. It may have been handed out before: [claimId] tells.
 *
 * @property key the counter's key
 * @property claimId the claim's id, under which it is billed once
 * @property amount what was taken from the counter
 */
public class ClaimToBill internal constructor(
    public val key: ByteArray,
    public val claimId: String,
    public val amount: Long,
) {
    /**
     * The key as a text.
     *
     * @throws IllegalStateException if it is no UTF-8
     */
    public val keyText: String
        get() = key.toText()
}

/**
 * To be thrown by a sweeper's callback that does not bill a claim: its units go back into the counter, with a TTL.
 *
 * @param message why
 */
public class RefusedException
    @JvmOverloads
    constructor(message: String = "the claim is not billed") :
    Exception(message)

/**
 * Something that a pass could not bill.
 *
 * @property key the counter's key, or that of something else that matches the pattern
 * @property claimId the claim that is open yet, which the next pass hands out again; `null` if nothing was claimed
 * @property cause what the callback threw; or a [TallylockException]: why the key cannot be billed, or the claim not be ended
 */
public class SweepFailure internal constructor(
    public val key: ByteArray,
    public val claimId: String?,
    public val cause: Exception,
) {
    /**
     * The key as a text.
     *
     * @throws IllegalStateException if it is no UTF-8
     */
    public val keyText: String
        get() = key.toText()
}

/**
 * What a pass of a sweeper has done.
 *
 * @property offered how many claims the callback was given
 * @property resumed those of them that earlier passes had left open
 * @property committed how many it billed
 * @property committedUnits what they had taken from their counters
 * @property aborted how many it refused
 * @property abortedUnits what these gave back
 * @property leftOpen how many are open yet; the next pass hands them out again
 * @property unusable how many keys match the pattern and cannot be billed; of the first 1,000 [failures] says why
 * @property failures what could not be billed, and why
 * @property error what ended the pass before its end, such as [LostException]; `null` if nothing did
 */
public class SweepReport internal constructor(
    public val offered: Long,
    public val resumed: Long,
    public val committed: Long,
    public val committedUnits: BigInteger,
    public val aborted: Long,
    public val abortedUnits: BigInteger,
    public val leftOpen: Long,
    public val unusable: Long,
    public val failures: List<SweepFailure>,
    public val error: TallylockException?,
) {
    /** Whether nothing failed. */
    public val isClean: Boolean
        get() = failures.isEmpty() && error == null

    override fun toString(): String =
        "SweepReport(offered=$offered, resumed=$resumed, committed=$committed, committedUnits=$committedUnits, " +
            "aborted=$aborted, abortedUnits=$abortedUnits, leftOpen=$leftOpen, unusable=$unusable, " +
            "failures=${failures.map { it.cause }}, error=$error)"
}
