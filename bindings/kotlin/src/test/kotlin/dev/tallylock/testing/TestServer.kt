package dev.tallylock.testing

import redis.clients.jedis.Jedis
import redis.clients.jedis.exceptions.JedisConnectionException
import redis.clients.jedis.params.SetParams
import java.net.InetAddress
import java.net.ServerSocket
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.ConcurrentHashMap
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

/** The servers that each test of real servers runs on. */
enum class ServerKind(internal val program: String) {
    Valkey("valkey-server"),
    Redis("redis-server"),
}

/** A server on a free port of loopback. It keeps nothing on disk and ends with the test run. */
class TestServer private constructor(
    val port: Int,
    private val process: Process,
    private val folder: Path,
) : AutoCloseable {
    val url: String = "redis://127.0.0.1:$port"

    /** Another program's connection, to see and to do what tallylock does not. */
    val bystander: Jedis = Jedis("127.0.0.1", port)

    /** Puts a text there as another program would, with ten minutes to live. */
    fun plant(
        key: String,
        value: String,
    ) {
        bystander.set(key, value, SetParams().ex(TEN_MINUTES))
    }

    /** Keeps it from doing anything while [action] runs, as if the machine hung. */
    inline fun <T> whileStopped(action: () -> T): T {
        signal("STOP")
        try {
            return action()
        } finally {
            signal("CONT")
        }
    }

    /** Kills it, also while it is stopped. */
    override fun close() {
        bystander.close()
        process.destroyForcibly().waitFor()
        folder.toFile().deleteRecursively()
    }

    fun signal(name: String) {
        check(ProcessBuilder("kill", "-$name", "${process.pid()}").start().waitFor() == 0) { "no $name for the server" }
    }

    companion object {
        private val running = ConcurrentHashMap<ServerKind, TestServer>()

        /** The server of this kind, emptied. */
        fun empty(kind: ServerKind): TestServer =
            running.computeIfAbsent(kind, ::start).also { it.bystander.flushAll() }

        /** A server of its own, which the caller closes. */
        fun start(kind: ServerKind): TestServer {
            repeat(ATTEMPTS) {
                start(kind, freePort())?.let { return it }
            }
            error("${kind.program} found no free port in $ATTEMPTS attempts")
        }

        private const val ATTEMPTS = 8
        private const val TEN_MINUTES = 600L
        private val START_DEADLINE = 20.seconds

        /** `null` if the server ended at once: somebody took the port meanwhile. */
        private fun start(
            kind: ServerKind,
            port: Int,
        ): TestServer? {
            val folder = Files.createTempDirectory("tallylock-kotlin-")
            val process =
                ProcessBuilder(
                    Repository.server(kind.program).toString(),
                    *arrayOf("--port", "$port", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"),
                    *arrayOf("--dir", "$folder", "--daemonize", "no"),
                ).redirectErrorStream(true).redirectOutput(folder.resolve("log").toFile()).start()
            val server = TestServer(port, process, folder)
            Runtime.getRuntime().addShutdownHook(Thread(server::close))
            val started = TimeSource.Monotonic.markNow()
            while (process.isAlive) {
                if (answers(port)) return server
                check(started.elapsedNow() < START_DEADLINE) { "${kind.program} does not answer" }
                Thread.onSpinWait()
            }
            return null
        }

        private fun answers(port: Int): Boolean =
            try {
                Jedis("127.0.0.1", port).use { it.ping() == "PONG" }
            } catch (_: JedisConnectionException) {
                false
            }

        private fun freePort(): Int = ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { it.localPort }
    }
}
