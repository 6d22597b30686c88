package dev.tallylock.cases

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable

// What steps are given, and what is expected of them.

@Serializable
class AddArguments(val amount: Amount)

@Serializable
class AddOnceArguments(
    val amount: Amount,
    val id: Text,
    @SerialName("remember_ms") val remember: Millis? = null,
)

@Serializable
class AddedExpectation(
    val total: Amount,
    val applied: Boolean,
)

@Serializable
class FenceArgument(val fence: Amount? = null)

@Serializable
class NeededFence(val fence: Amount)

@Serializable
class GuardedArguments(
    val value: Bytes,
    val fence: Amount,
    @SerialName("ttl_ms") val ttl: Millis,
)

@Serializable
class StealArguments(
    val token: Bytes? = null,
    val seen: String? = null,
    val reason: String,
) {
    init {
        requireOne(token, seen)
    }
}

/** A token, or the name of one that was given. */
@Serializable
class AdoptArguments(
    val token: String? = null,
    val given: String? = null,
) {
    init {
        requireOne(token, given)
    }
}

/** The fence as a pattern. */
@Serializable
class FenceOrNothing(val fence: String?)

@Serializable
class HolderOrNobody(val holder: HolderExpectation?)

/** Token, label and fence as patterns. */
@Serializable
class HolderExpectation(
    val token: String,
    val label: String?,
    @SerialName("remaining_ms") val remaining: Span?,
    val fence: String?,
)

@Serializable
class ClaimArguments(
    val id: Text,
    val fence: Amount? = null,
)

@Serializable
class CommitArguments(
    val id: Text,
    val amount: Amount,
)

@Serializable
class AmountExpectation(val amount: Amount)

@Serializable
class ClaimOrNothing(val claim: ClaimExpectation?)

@Serializable
class ClaimExpectation(
    val amount: Amount,
    val state: StateName,
)

@Serializable
class ClaimsExpectation(val claims: List<ListedClaim>)

@Serializable
class ListedClaim(
    val id: Text,
    val amount: Amount,
)

@Serializable
class UpdateArguments(
    val append: Bytes,
    @SerialName("ttl_ms") val ttl: Millis,
)

@Serializable
class EntriesArgument(val entries: List<ListedEntry>)

@Serializable
class ListedEntry(
    val on: String,
    val amount: Amount,
    val id: Text? = null,
)

@Serializable
class ResultsExpectation(val results: List<ResultExpectation>)

/** What an entry has given, or the code of its error. */
@Serializable
class ResultExpectation(
    val total: Amount? = null,
    val applied: Boolean? = null,
    val code: String? = null,
) {
    init {
        require((total == null) == (applied == null)) { "a total comes with whether it was applied" }
        requireOne(total, code)
        code?.let(::requireCode)
    }
}

@Serializable
class PatternArgument(val pattern: Text)

@Serializable
class ExpiringArguments(
    val pattern: Text,
    @SerialName("within_ms") val within: Millis,
)

@Serializable
class CountersExpectation(val counters: List<ListedCounter>)

@Serializable
class ListedCounter(
    val key: Text,
    val total: Amount,
)

@Serializable
class Total(val total: Amount)

@Serializable
class TotalOrNothing(val total: Amount?)

@Serializable
class AmountOrNothing(val amount: Amount?)

@Serializable
class BytesOrNothing(val value: Bytes?)

@Serializable
class ReplaceArguments(
    val value: Bytes,
    @SerialName("ttl_ms") val ttl: Millis,
)

@Serializable
class TtlArgument(
    @SerialName("ttl_ms") val ttl: Millis,
)

@Serializable
class OptionalTtlArgument(
    @SerialName("ttl_ms") val ttl: Millis? = null,
)

@Serializable
class CompareAndSetArguments(
    val expected: Bytes,
    val value: Bytes,
    @SerialName("ttl_ms") val ttl: Millis,
)

@Serializable
class Done(val done: Boolean)

@Serializable
class WaitArgument(
    @SerialName("wait_ms") val wait: Millis? = null,
)

@Serializable
class MarginArgument(
    @SerialName("margin_ms") val margin: Millis,
)

@Serializable
class SpanOfMillis(val ms: Span)

@Serializable
class AdvanceArgument(val ms: Long) {
    init {
        require(ms >= 1) { "time only advances" }
    }
}

@Serializable
class KeyArgument(val key: Text)

/** Larger than another lease's fence, or exactly this. */
@Serializable
class FenceExpectation(
    val above: String? = null,
    val equals: String? = null,
    val `is`: Amount? = null,
) {
    init {
        require(listOfNotNull(above, equals, `is`).size == 1) { "a fence is above another, equals it, or is a number" }
    }
}

internal fun requireOne(
    expected: Any?,
    error: Any?,
) = require((expected == null) != (error == null)) { "either a result or an error must be expected" }
