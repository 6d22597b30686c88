package dev.tallylock

import dev.tallylock.internal.ServerArguments
import dev.tallylock.internal.Session
import dev.tallylock.internal.SeveralServersArguments
import dev.tallylock.internal.toMicros
import kotlin.time.Duration
import dev.tallylock.blocking.Client as BlockingClient
import dev.tallylock.blocking.Redlock as BlockingRedlock
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
    ): Client = Client(Session.open(ServerArguments(url, timeout?.toMicros(), owner, avoidScripts)::open))

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
    ): BlockingClient =
        Client(Session.opened(ServerArguments(url, timeout?.toMicros(), owner, avoidScripts)::connect)).blocking

    /**
     * Connects to several independent servers, of which more than half decide about each lock.
     *
     * Cancelling the coroutine ends the attempt.
     *
     * @param urls one for each server, as for [connect]: an odd number, 3 to 99, each another server
     * @param timeout how long one call may take, repeats included; tallylock's default if `null`
     * @param nodeTimeout how long a server is waited for that the others can do without; a small part of the lock's TTL if `null`
     * @param rejoin whether a server that knows nothing of a lock has it again after the next extend, which then waits for all
     *   servers. Only for servers that keep the rule of the delayed restart, see docs/locks.md
     * @param owner what people see in the value of this client's locks
     * @param avoidScripts go by WATCH, MULTI and EXEC from the first call on, as for [connect]
     * @return a client, which has locks only, once more than half of the servers are connected; [Redlock.close] it, or `use` it
     * @throws InvalidArgumentException if one of them is wrong; nothing is sent
     * @throws UnavailableException if too few servers can be reached within [timeout]; the message counts them
     * @throws ForbiddenException if a server wants another user or password, and said so before enough were connected
     */
    public suspend fun connectRedlock(
        urls: Collection<String>,
        timeout: Duration? = null,
        nodeTimeout: Duration? = null,
        rejoin: Boolean = false,
        owner: Owner = Owner.HostAndPid,
        avoidScripts: Boolean = false,
    ): Redlock {
        val arguments =
            SeveralServersArguments(urls, timeout?.toMicros(), nodeTimeout?.toMicros(), rejoin, owner, avoidScripts)
        return Redlock(Session.open(arguments::open))
    }

    /**
     * Connects to several independent servers on the calling thread: [connectRedlock] for Java and for blocking code.
     *
     * @param urls one for each server, as for [connect]: an odd number, 3 to 99, each another server
     * @param timeout how long one call may take, repeats included; tallylock's default if `null`
     * @param nodeTimeout how long a server is waited for that the others can do without; a small part of the lock's TTL if `null`
     * @param rejoin whether a server that knows nothing of a lock has it again after the next extend, as for [connectRedlock]
     * @param owner what people see in the value of this client's locks
     * @param avoidScripts go by WATCH, MULTI and EXEC from the first call on, as for [connect]
     * @return a blocking client, which has locks only; close it, or use it in a `try (...)`
     * @throws TallylockException as [connectRedlock] does
     */
    @JvmStatic
    @JvmOverloads
    public fun connectRedlockBlocking(
        urls: Collection<String>,
        timeout: JavaDuration? = null,
        nodeTimeout: JavaDuration? = null,
        rejoin: Boolean = false,
        owner: Owner = Owner.HostAndPid,
        avoidScripts: Boolean = false,
    ): BlockingRedlock {
        val arguments =
            SeveralServersArguments(urls, timeout?.toMicros(), nodeTimeout?.toMicros(), rejoin, owner, avoidScripts)
        return Redlock(Session.opened(arguments::connect)).blocking
    }
}
