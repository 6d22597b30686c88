package dev.tallylock.testing

import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

// Independent servers, for locks on several of them.

/**
 * Runs a test on five servers of its own, of both kinds, and kills them. A server that hung may do late what it was told in one
 * test, and so no other sees it.
 */
fun onFiveServers(test: suspend CoroutineScope.(servers: List<TestServer>) -> Unit) {
    val servers = mutableListOf<TestServer>()
    try {
        repeat(SERVERS) { servers += TestServer.start(ServerKind.entries[it % ServerKind.entries.size]) }
        runBlocking(Dispatchers.Default) { test(servers.toList()) }
    } finally {
        servers.forEach(TestServer::close)
    }
}

/** Where the servers are. */
val List<TestServer>.urls: List<String> get() = map(TestServer::url)

/** On how many of the servers the key is. */
fun List<TestServer>.holding(key: String): Int = count { it.bystander.exists(key) }

/** Waits until the key is on none of the servers: what is undone in the background takes a moment. */
fun List<TestServer>.awaitFree(key: String) {
    try {
        eventually { holding(key) == 0 }
    } catch (late: IllegalStateException) {
        throw AssertionError("it is left: ${map { it.bystander.get(key) }}", late)
    }
}

/** How many connections of tallylock's are open. */
fun List<TestServer>.connections(): Int =
    sumOf { server ->
        server.bystander
            .clientList()
            .lines()
            .count { "name=tallylock" in it }
    }

/** Keeps the servers from doing anything while [action] runs. */
inline fun <T> List<TestServer>.whileStopped(action: () -> T): T {
    forEach { it.signal("STOP") }
    try {
        return action()
    } finally {
        forEach { it.signal("CONT") }
    }
}

/** A client that is connected to all of the servers, and not just to more than half; it gives no call up. */
suspend fun Face.connectToAll(
    servers: List<TestServer>,
    rejoin: Boolean = false,
): FaceRedlock {
    val redlock = connectRedlock(servers.urls, timeout = 1.minutes, rejoin = rejoin)
    redlock.reachAll(servers)
    return redlock
}

/**
 * Waits until the client has reached each of the servers. What is undone while one is being connected to may stay there until its
 * TTL ends.
 */
suspend fun FaceRedlock.reachAll(servers: List<TestServer>) {
    acquireOnAll("reached", servers).release()
    servers.awaitFree("reached")
}

/** A lease that all of the servers have granted, and not just more than half. */
suspend fun FaceRedlock.acquireOnAll(
    key: String,
    servers: List<TestServer>,
): FaceLease {
    val lease = lock(key, 1.minutes).acquire(wait = 20.seconds)
    eventually { servers.holding(key) == servers.size }
    return lease
}

private const val SERVERS = 5
