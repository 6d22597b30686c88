/**
 * The billing job in its shortest form: add seconds, then bill them under a lock, fenced.
 *
 * Argument: a URL; `memory://` if none is given.
 */
package quickstart

import dev.tallylock.Tallylock
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

suspend fun main(arguments: Array<String>) {
    Tallylock.connect(arguments.firstOrNull() ?: "memory://").use { client ->
        val pending = client.counter("session:42:billableSecondsPending", ttl = 15.minutes)
        pending.add(30)
        pending.add(45)

        client.lock("billing:42", ttl = 30.seconds).withLock(wait = 5.seconds) { lease ->
            val billed = pending.drain()
            lease.ensure(2.seconds)
            println("invoice: $billed seconds, fence ${lease.fence}")
        }
    }
}
