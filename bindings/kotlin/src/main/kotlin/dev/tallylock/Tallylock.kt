package dev.tallylock

import dev.tallylock.internal.Session
import dev.tallylock.internal.toMicros
import kotlin.time.Duration
import dev.tallylock.blocking.Client as BlockingClient
import java.time.Duration as JavaDuration

/** Where clients come from. */
public object Tallylock {
    /**
     * Connects to a server.
     *
     * Cancelling the coroutine ends the attempt.
     *
     * @param url `redis://`, `rediss://`, `valkey://`, `valkeys://` or `unix://`, with `user:password@` and `/database`
     *   if need be; or `memory://`, a server in this process for tests, which [Client.memory] steers
     * @param timeout how long one call may take, repeats included; tallylock's default if `null`
     * @param owner what people see in the value of this client's locks
     * @param avoidScripts go by WATCH, MULTI and EXEC from the first call on; a client finds out by itself that a server
     *   or an account forbids scripts, from its first refusal: this is for where such a refusal is logged as an attack
     * @return a client; [Client.close] it, or `use` it
     * @throws InvalidArgumentException if the URL, the timeout or the label is wrong
     * @throws UnavailableException if the server cannot be reached, or does not answer in time
     * @throws ForbiddenException if it wants another user or password
     */
    public suspend fun connect(
        url: String,
        timeout: Duration? = null,
        owner: Owner = Owner.HostAndPid,
        avoidScripts: Boolean = false,
    ): Client = Client(Session.open(url, timeout?.toMicros(), owner, avoidScripts))

    /**
     * Connects to a server on the calling thread: [connect] for Java and for blocking code.
     *
     * @param url as for [connect]
     * @param timeout how long one call may take, repeats included; tallylock's default if `null`
     * @param owner what people see in the value of this client's locks
     * @param avoidScripts go by WATCH, MULTI and EXEC from the first call on; a client finds out by itself that a server
     *   or an account forbids scripts, from its first refusal: this is for where such a refusal is logged as an attack
     * @return a blocking client; close it, or use it in a `try (...)`
     * @throws TallylockException as [connect] does
     */
    @JvmStatic
    @JvmOverloads
    public fun connectBlocking(
        url: String,
        timeout: JavaDuration? = null,
        owner: Owner = Owner.HostAndPid,
        avoidScripts: Boolean = false,
    ): BlockingClient = Client(Session.openBlocking(url, timeout?.toMicros(), owner, avoidScripts)).blocking
}
