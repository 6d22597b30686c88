package dev.tallylock.blocking

import dev.tallylock.Losses
import java.time.Duration
import kotlin.time.toJavaDuration
import dev.tallylock.Metrics as SuspendingMetrics

/**
 * What a client has counted since it was connected, as [Client.metrics] gives it: numbers that only grow, and the extremes.
 *
 * `granted + adopted` leases came to be; of them `released + transferred + abandoned + lost.total` are over, and the others
 * are held.
 *
 * @property granted acquires that were granted the lock
 * @property busy acquires that ended as [dev.tallylock.BusyException]
 * @property cancelled acquires that their callers gave up
 * @property failed acquires that ended with another exception
 * @property attempts how often these have asked for the lock, each time all servers
 * @property waited how long these have taken, all together
 * @property longestWait how long the longest of these took
 * @property adopted leases that were taken over by [Lock.adopt]
 * @property released leases that were released
 * @property transferred leases that were given away by [Lease.transfer]
 * @property abandoned leases that were forgotten without a release, or whose release has an unknown outcome
 * @property lost leases that were lost, by reason
 * @property held how long leases were held that were released, given away or lost, all together
 * @property longestHold how long the one of these was held that was held the longest
 * @property renewals renewals that gave a lease its TTL again; an [extend][Lease.extend] is none
 * @property failedRenewals renewals that had no success; each is tried again while there is time
 * @property smallestMargin the least that was left of a lease when it was renewed; `null` before the first renewal
 * @property stolen locks that were stolen through this client
 * @property healed counters that had lost their TTL and were given one by a drain or a claim
 */
public data class Metrics(
    public val granted: Long,
    public val busy: Long,
    public val cancelled: Long,
    public val failed: Long,
    public val attempts: Long,
    public val waited: Duration,
    public val longestWait: Duration,
    public val adopted: Long,
    public val released: Long,
    public val transferred: Long,
    public val abandoned: Long,
    public val lost: Losses,
    public val held: Duration,
    public val longestHold: Duration,
    public val renewals: Long,
    public val failedRenewals: Long,
    public val smallestMargin: Duration?,
    public val stolen: Long,
    public val healed: Long,
)

/** The same with Java's durations. */
internal fun SuspendingMetrics.toBlocking(): Metrics =
    Metrics(
        granted = granted,
        busy = busy,
        cancelled = cancelled,
        failed = failed,
        attempts = attempts,
        waited = waited.toJavaDuration(),
        longestWait = longestWait.toJavaDuration(),
        adopted = adopted,
        released = released,
        transferred = transferred,
        abandoned = abandoned,
        lost = lost,
        held = held.toJavaDuration(),
        longestHold = longestHold.toJavaDuration(),
        renewals = renewals,
        failedRenewals = failedRenewals,
        smallestMargin = smallestMargin?.toJavaDuration(),
        stolen = stolen,
        healed = healed,
    )
