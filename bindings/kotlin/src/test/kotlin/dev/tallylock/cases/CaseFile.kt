@file:OptIn(ExperimentalSerializationApi::class)

package dev.tallylock.cases

import dev.tallylock.ClaimState
import dev.tallylock.Expiry
import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonClassDiscriminator

// The shape of a file of cases, as tests/cases/schema.json says it: what is not in these classes is refused by the
// parser.

/** A file of cases. */
@Serializable
class CaseFile(
    @Suppress("unused") val about: String,
    val cases: List<Case>,
)

/** A case: what is there before, what is done, and what is left. */
@Serializable
class Case(
    val name: String,
    val why: String,
    val only: Place? = null,
    val needs: List<Need> = emptyList(),
    val given: List<Plant> = emptyList(),
    val handles: List<Handle>,
    val steps: List<Step>,
    val left: List<Left>,
)

/** Where a case may be restricted to. */
@Serializable
enum class Place {
    @SerialName("memory")
    Memory,
}

/** What a language's types may be unable to express. */
@Serializable
enum class Need {
    @SerialName("negative_duration")
    NegativeDuration,

    @SerialName("big_amount")
    BigAmount,
}

/** What another program put there. */
@Serializable
class Plant(
    val key: Text,
    val value: Bytes? = null,
    val type: OtherType? = null,
    @SerialName("ttl_ms") val ttlMs: Long?,
) {
    init {
        require((value == null) != (type == null)) { "a plant has either a value or a type" }
    }
}

/** A type of key that is no string. */
@Serializable
enum class OtherType {
    @SerialName("list")
    List,
}

/** A key that is there in the end. */
@Serializable
class Left(
    val key: Text,
    val value: Bytes? = null,
    val pattern: String? = null,
    val type: OtherType? = null,
    @SerialName("ttl_ms") val ttlMs: Span?,
) {
    init {
        require(
            listOfNotNull(value, pattern, type).size == 1,
        ) { "what is left has either a value, a pattern or a type" }
    }
}

/** What is opened on the client. */
@Serializable
@JsonClassDiscriminator("kind")
sealed interface Handle {
    val name: String

    @Serializable
    @SerialName("counter")
    class Counter(
        override val name: String,
        val key: Text,
        @SerialName("ttl_ms") val ttl: Millis,
        val expiry: ExpiryName? = null,
    ) : Handle

    @Serializable
    @SerialName("value")
    class Value(
        override val name: String,
        val key: Text,
    ) : Handle

    @Serializable
    @SerialName("guarded")
    class Guarded(
        override val name: String,
        val key: Text,
    ) : Handle

    @Serializable
    @SerialName("lock")
    class Lock(
        override val name: String,
        val key: Text,
        @SerialName("ttl_ms") val ttl: Millis,
        val renewal: Boolean = true,
    ) : Handle
}

/** An expiry by the word for it. */
@Serializable
enum class ExpiryName(val expiry: Expiry) {
    @SerialName("sliding")
    Sliding(Expiry.Sliding),

    @SerialName("fixed")
    Fixed(Expiry.Fixed),
}

/** The error that a step must end with. */
@Serializable
class ExpectedError(
    val code: String,
    val applied: AppliedName,
    val reason: ReasonName? = null,
    val mentions: List<String> = emptyList(),
) {
    init {
        requireCode(code)
        require((code == "lost") == (reason != null)) { "lost has a reason, and nothing else has" }
        require(code != "lost" || applied == AppliedName.No) { "lost is never applied" }
    }
}

/** Refuses what is the code of no error. */
internal fun requireCode(code: String): Unit = require(code in CODES) { "there is no code $code" }

private val CODES =
    setOf(
        "busy",
        "lost",
        "already_held",
        "fenced_off",
        "conflict",
        "invalid_argument",
        "wrong_type",
        "not_an_integer",
        "overflow",
        "timeout",
        "unavailable",
        "outcome_unknown",
        "read_only",
        "forbidden",
        "out_of_memory",
        "unsupported",
        "cancelled",
        "closed",
    )

/** Whether it was applied, by the word for it. */
@Serializable
enum class AppliedName(val applied: dev.tallylock.Applied) {
    @SerialName("no")
    No(dev.tallylock.Applied.No),

    @SerialName("maybe")
    Maybe(dev.tallylock.Applied.Maybe),
}

/** What has become of a claim, by the word for it. */
@Serializable
enum class StateName(val state: ClaimState) {
    @SerialName("open")
    Open(ClaimState.Open),

    @SerialName("committed")
    Committed(ClaimState.Committed),

    @SerialName("aborted")
    Aborted(ClaimState.Aborted),
}

/** Why a lease is lost, by the word for it. */
@Serializable
enum class ReasonName(val word: String) {
    @SerialName("expired")
    Expired("expired"),

    @SerialName("taken_over")
    TakenOver("taken_over"),

    @SerialName("forked")
    Forked("forked"),
}

/** `index.json`: which files there are, and how many cases each has. */
@Serializable
class Index(
    val files: List<Listed>,
    val bad: List<Bad>,
) {
    @Serializable
    class Listed(
        val file: String,
        val cases: Int,
    )

    @Serializable
    class Bad(
        val file: String,
        val must: Must,
        val because: String,
    )

    @Serializable
    enum class Must {
        @SerialName("be refused")
        BeRefused,

        @SerialName("fail")
        Fail,
    }
}
