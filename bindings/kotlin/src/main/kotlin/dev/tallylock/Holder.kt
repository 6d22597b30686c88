package dev.tallylock

import kotlin.time.Duration

/**
 * Who holds a lock, as [Lock.inspect] finds it.
 *
 * @property token the owner value, of tallylock or of another library. Who knows it can release and steal the lock: keep it
 *   out of logs
 * @property label who it is, as the token says; `null` if it does not, or is of another library
 * @property remaining how long the lock lasts yet, by the server's clock; `null` if it never ends
 * @property fence the last fence that was granted for the lock: the holder's, unless the token is of another library; `null` if
 *   none was granted, or it was lost
 */
public class Holder internal constructor(
    public val token: ByteArray,
    public val label: String?,
    public val remaining: Duration?,
    public val fence: Long?,
)
