package dev.tallylock

/** When an add sets the counter's TTL. */
public enum class Expiry {
    /** On each add: the counter lives as long as it is added to. The default. */
    Sliding,

    /** Only where the counter has none: it ends one TTL after its first add. */
    Fixed,
}
