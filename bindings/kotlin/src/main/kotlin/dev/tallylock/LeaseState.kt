package dev.tallylock

/** What has become of a lease. */
public sealed class LeaseState {
    /** It is ours by our clock. */
    public data object Held : LeaseState()

    /** It was released, transferred or forgotten. */
    public data object LetGo : LeaseState()

    /**
     * It was lost.
     *
     * @property exception what each of its verbs throws, with the [reason][TallylockException.reason]
     */
    public class Lost internal constructor(public val exception: LostException) : LeaseState()
}
