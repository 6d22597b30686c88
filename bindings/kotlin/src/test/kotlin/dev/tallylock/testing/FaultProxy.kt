package dev.tallylock.testing

import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json

/** The fault proxy before a server: it loses, holds and cuts at command. Ends with [close]. */
class FaultProxy(server: TestServer) : AutoCloseable {
    private val process =
        ProcessBuilder(Repository.faultProxy().toString(), "127.0.0.1:${server.port}")
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start()
    private val commands = process.outputStream.bufferedWriter()
    private val answers = process.inputStream.bufferedReader()

    /** Where clients connect to. */
    val url: String = "redis://${answer().listen}"

    /** Loses the reply to the next request that has this text in it, and cuts its connection. */
    fun loseMatching(text: String) {
        run("lose-matching $text")
    }

    /** Loses the reply to the n-th request from now, and cuts its connection. */
    fun lose(n: Int) {
        run("lose $n")
    }

    /** Cuts all connections. */
    fun cut() {
        run("cut")
    }

    /** Refuses new connections. */
    fun refuse() {
        run("refuse")
    }

    /** Accepts new connections again. */
    fun accept() {
        run("accept")
    }

    /** Holds the reply to the next request that has this text in it. */
    fun holdMatching(text: String) {
        run("hold-matching $text")
    }

    /** Holds all replies. */
    fun hold() {
        run("hold")
    }

    /** Waits until so many replies are held. */
    fun awaitHeld(count: Int) {
        run("await-held $count")
    }

    /** Lets what is held pass. */
    fun go() {
        run("go")
    }

    /** What has passed so far. */
    fun stats(): Stats = checkNotNull(run("stats").stats)

    override fun close() {
        commands.close()
        process.waitFor()
    }

    private fun run(command: String): Answer {
        commands.write("$command\n")
        commands.flush()
        return answer().also { check(it.ok) { "the fault proxy refuses `$command`: ${it.error}" } }
    }

    private fun answer(): Answer =
        Json.decodeFromString(checkNotNull(answers.readLine()) { "the fault proxy has ended" })

    @Serializable
    private data class Answer(
        val ok: Boolean,
        val listen: String? = null,
        val stats: Stats? = null,
        val error: String? = null,
    )

    /** What the proxy has counted. */
    @Serializable
    data class Stats(
        val connections: Long,
        val open: Int,
        val requests: Map<String, Long>,
        val lost: Long,
        val held: Int,
        val armed: Int,
        val malformed: Long,
    )
}
