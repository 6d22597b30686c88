package dev.tallylock.testing

import java.nio.file.Files
import java.nio.file.Path

/** Files of the repository that the tests need. */
object Repository {
    private val root: Path = findRoot()

    /** The cases that all languages share. */
    val cases: Path = root.resolve("tests/cases")

    /** Files that are no good cases. */
    val badCases: Path = root.resolve("tests/cases-bad")

    /** The fault proxy, a program of the crate tallylock-testkit. */
    fun faultProxy(): Path =
        program("target/debug/tallylock-fault-proxy", "cargo build -p tallylock-testkit --bin tallylock-fault-proxy")

    /** A server of this name. */
    fun server(name: String): Path = program(".cache/servers/$name", "bash setup/servers.sh")

    private fun program(
        path: String,
        command: String,
    ): Path {
        val program = root.resolve(path)
        check(Files.isExecutable(program)) { "there is no $path: run `$command` in the repository's root" }
        return program
    }

    private fun findRoot(): Path {
        System.getenv("TALLYLOCK_ROOT")?.let { return Path.of(it) }
        val start = Path.of(System.getProperty("user.dir")).toAbsolutePath()
        return generateSequence(start) { it.parent }.firstOrNull { Files.exists(it.resolve("tests/cases/index.json")) }
            ?: error("no folder above $start has tests/cases: set TALLYLOCK_ROOT")
    }
}
