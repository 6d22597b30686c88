package dev.tallylock

/** What people who look at the value of a lock's key see of its holder; it decides nothing. */
public sealed class Owner {
    /** The host's name and the process id: the default. */
    public data object HostAndPid : Owner()

    /**
     * A text of the caller's.
     *
     * @property text 1 to 64 bytes of printable ASCII
     */
    public data class Label(public val text: String) : Owner()

    /** Nothing at all. */
    public data object None : Owner()
}
