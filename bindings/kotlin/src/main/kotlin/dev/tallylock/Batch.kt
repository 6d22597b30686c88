package dev.tallylock

/** An add for [Client.addMany]. Made by [Counter.entry]; may be sent more than once. */
public class Entry internal constructor(
    internal val counter: ByteArray,
    internal val amount: Long,
    internal val idempotencyKey: ByteArray?,
    internal val rememberMicros: Long?,
)

/** What has become of an [Entry]. */
public sealed interface AddResult {
    /**
     * What the add has given.
     *
     * @return the total, and whether it was applied: without an idempotency key it always was
     * @throws TallylockException if the add failed
     */
    public fun getOrThrow(): Added

    /** The add came to its end. */
    public data class Success(public val added: Added) : AddResult {
        override fun getOrThrow(): Added = added
    }

    /** The add failed; [TallylockException.applied] of the exception says whether it may have been applied. */
    public data class Failure(public val exception: TallylockException) : AddResult {
        override fun getOrThrow(): Added = throw exception
    }
}
