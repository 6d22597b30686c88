package dev.tallylock

/**
 * What an add with an idempotency key has given.
 *
 * @property total the counter's present total
 * @property applied whether this call has added; `false` if an earlier one with the same key had
 */
public data class Added(
    public val total: Long,
    public val applied: Boolean,
)
