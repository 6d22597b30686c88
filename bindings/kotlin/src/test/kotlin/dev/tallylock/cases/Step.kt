@file:OptIn(ExperimentalSerializationApi::class)

package dev.tallylock.cases

import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonClassDiscriminator

/** Something that is done, and what must come of it. */
@Serializable
@JsonClassDiscriminator("do")
sealed interface Step {
    /** A step on a handle, or on a lease. */
    sealed interface OnName : Step {
        val on: String
    }

    /** A step that may be refused; [error] is what it must be refused with. */
    sealed interface MayFail : OnName {
        val error: ExpectedError?
    }

    sealed interface OnCounter : MayFail

    sealed interface OnValue : MayFail

    sealed interface OnGuarded : MayFail

    sealed interface OnLock : MayFail

    sealed interface OnLease : OnName

    /** A step on the client itself. */
    sealed interface OnClient : Step {
        val error: ExpectedError?
    }

    @Serializable
    @SerialName("counter.add")
    class Add(
        override val on: String,
        val with: AddArguments,
        val expect: Total? = null,
        override val error: ExpectedError? = null,
    ) : OnCounter {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("counter.add_once")
    class AddOnce(
        override val on: String,
        val with: AddOnceArguments,
        val expect: AddedExpectation? = null,
        override val error: ExpectedError? = null,
    ) : OnCounter {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("counter.read")
    class Read(
        override val on: String,
        val expect: TotalOrNothing? = null,
        override val error: ExpectedError? = null,
    ) : OnCounter {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("counter.drain")
    class Drain(
        override val on: String,
        val with: FenceArgument = FenceArgument(),
        val expect: AmountOrNothing? = null,
        override val error: ExpectedError? = null,
    ) : OnCounter {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("counter.finish")
    class Finish(
        override val on: String,
        val expect: AmountOrNothing? = null,
        override val error: ExpectedError? = null,
    ) : OnCounter {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("counter.claim")
    class Claim(
        override val on: String,
        val with: ClaimArguments,
        val expect: ClaimOrNothing? = null,
        override val error: ExpectedError? = null,
    ) : OnCounter {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("counter.commit")
    class Commit(
        override val on: String,
        val with: CommitArguments,
        override val error: ExpectedError? = null,
    ) : OnCounter

    @Serializable
    @SerialName("counter.abort")
    class Abort(
        override val on: String,
        val with: ClaimArguments,
        val expect: AmountExpectation? = null,
        override val error: ExpectedError? = null,
    ) : OnCounter {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("counter.claims")
    class Claims(
        override val on: String,
        val expect: ClaimsExpectation? = null,
        override val error: ExpectedError? = null,
    ) : OnCounter {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("value.get")
    class Get(
        override val on: String,
        val expect: BytesOrNothing? = null,
        override val error: ExpectedError? = null,
    ) : OnValue {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("value.replace_if_present")
    class ReplaceIfPresent(
        override val on: String,
        val with: ReplaceArguments,
        val expect: Done? = null,
        override val error: ExpectedError? = null,
    ) : OnValue {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("value.touch")
    class Touch(
        override val on: String,
        val with: TtlArgument,
        val expect: Done? = null,
        override val error: ExpectedError? = null,
    ) : OnValue {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("value.compare_and_set")
    class CompareAndSet(
        override val on: String,
        val with: CompareAndSetArguments,
        val expect: Done? = null,
        override val error: ExpectedError? = null,
    ) : OnValue {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("value.update")
    class Update(
        override val on: String,
        val with: UpdateArguments,
        val expect: BytesOrNothing? = null,
        override val error: ExpectedError? = null,
    ) : OnValue {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("guarded.set")
    class GuardedSet(
        override val on: String,
        val with: GuardedArguments,
        override val error: ExpectedError? = null,
    ) : OnGuarded

    @Serializable
    @SerialName("guarded.delete")
    class GuardedDelete(
        override val on: String,
        val with: NeededFence,
        val expect: Done? = null,
        override val error: ExpectedError? = null,
    ) : OnGuarded {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("lock.inspect")
    class Inspect(
        override val on: String,
        val seen: String? = null,
        val expect: HolderOrNobody? = null,
        override val error: ExpectedError? = null,
    ) : OnLock {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("lock.steal")
    class Steal(
        override val on: String,
        val with: StealArguments,
        val expect: FenceOrNothing? = null,
        override val error: ExpectedError? = null,
    ) : OnLock {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("lock.acquire")
    class Acquire(
        override val on: String,
        val `as`: String? = null,
        val with: WaitArgument = WaitArgument(),
        override val error: ExpectedError? = null,
    ) : OnLock {
        init {
            requireOne(`as`, error)
        }
    }

    @Serializable
    @SerialName("lock.adopt")
    class Adopt(
        override val on: String,
        val `as`: String? = null,
        val with: AdoptArguments,
        override val error: ExpectedError? = null,
    ) : OnLock {
        init {
            requireOne(`as`, error)
        }
    }

    @Serializable
    @SerialName("lock.block")
    class Block(
        override val on: String,
        val `as`: String? = null,
        val with: WaitArgument = WaitArgument(),
        val inside: List<Step>,
        val raises: Boolean,
        override val error: ExpectedError? = null,
    ) : OnLock

    @Serializable
    @SerialName("lease.extend")
    class Extend(
        override val on: String,
        val with: OptionalTtlArgument = OptionalTtlArgument(),
        val error: ExpectedError? = null,
    ) : OnLease

    @Serializable
    @SerialName("lease.release")
    class Release(
        override val on: String,
        val error: ExpectedError? = null,
    ) : OnLease

    @Serializable
    @SerialName("lease.transfer")
    class Transfer(
        override val on: String,
        val `as`: String? = null,
        val error: ExpectedError? = null,
    ) : OnLease {
        init {
            requireOne(`as`, error)
        }
    }

    @Serializable
    @SerialName("lease.fence")
    class Fence(
        override val on: String,
        val expect: FenceExpectation,
    ) : OnLease

    @Serializable
    @SerialName("lease.remaining")
    class Remaining(
        override val on: String,
        val expect: SpanOfMillis,
    ) : OnLease

    @Serializable
    @SerialName("lease.ensure")
    class Ensure(
        override val on: String,
        val with: MarginArgument,
        val error: ExpectedError? = null,
    ) : OnLease

    @Serializable
    @SerialName("lease.verify")
    class Verify(
        override val on: String,
        val with: MarginArgument,
        val error: ExpectedError? = null,
    ) : OnLease

    @Serializable
    @SerialName("client.add_many")
    class AddMany(
        val with: EntriesArgument,
        val expect: ResultsExpectation? = null,
        override val error: ExpectedError? = null,
    ) : OnClient {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("client.scan")
    class Scan(
        val with: PatternArgument,
        val expect: CountersExpectation? = null,
        override val error: ExpectedError? = null,
    ) : OnClient {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("client.expiring")
    class Expiring(
        val with: ExpiringArguments,
        val expect: CountersExpectation? = null,
        override val error: ExpectedError? = null,
    ) : OnClient {
        init {
            requireOne(expect, error)
        }
    }

    @Serializable
    @SerialName("advance")
    class Advance(val with: AdvanceArgument) : Step

    @Serializable
    @SerialName("plant")
    class Planting(val with: Plant) : Step

    @Serializable
    @SerialName("remove")
    class Remove(val with: KeyArgument) : Step

    @Serializable
    @SerialName("lose_next_reply")
    class LoseNextReply : Step
}
