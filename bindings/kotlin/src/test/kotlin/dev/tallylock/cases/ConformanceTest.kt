package dev.tallylock.cases

import dev.tallylock.testing.Face
import dev.tallylock.testing.Repository
import dev.tallylock.testing.ServerKind
import dev.tallylock.testing.TestServer
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory

/** The cases that all languages share, through both faces, on `memory://` and on both servers. */
class ConformanceTest {
    private val suite = Suite.load()

    @TestFactory
    fun casesOnMemory(): List<DynamicTest> = onEachFace(isServer = false) { case, face -> runOnMemory(case, face) }

    @TestFactory
    fun casesOnValkey(): List<DynamicTest> = casesOn(ServerKind.Valkey)

    @TestFactory
    fun casesOnRedis(): List<DynamicTest> = casesOn(ServerKind.Redis)

    @TestFactory
    fun badCasesAreRefusedOrFail(): List<DynamicTest> =
        suite.index.bad.map { bad ->
            dynamicTest("${bad.file}: ${bad.because}") {
                val path = Repository.badCases.resolve(bad.file)
                when (bad.must) {
                    Index.Must.BeRefused ->
                        assertThrows(IllegalArgumentException::class.java) { Suite.parse(path) }
                    Index.Must.Fail -> {
                        val cases = Suite.parse(path).cases
                        for (case in cases) {
                            assertThrows(
                                AssertionError::class.java,
                            ) { runBlocking { runOnMemory(case, Face.Suspending) } }
                        }
                    }
                }
            }
        }

    private fun casesOn(kind: ServerKind): List<DynamicTest> =
        onEachFace(isServer = true) { case, face ->
            val server = TestServer.empty(kind)
            face.connect(server.url).use { CaseRun(case, it, ServerWorld(server)).run() }
        }

    private suspend fun runOnMemory(
        case: Case,
        face: Face,
    ) = face.connect("memory://").use { client ->
        CaseRun(case, client, MemoryWorld(checkNotNull(client.memory))).run()
    }

    /** A test for each case and face, and at last one that as many have run as the index lists. */
    private fun onEachFace(
        isServer: Boolean,
        run: suspend (Case, Face) -> Unit,
    ): List<DynamicTest> =
        Face.entries.flatMap { face ->
            var ran = 0
            val leftOut = suite.files.values.sumOf { file -> file.cases.count { isLeftOut(it, isServer) } }
            val tests =
                suite.files.flatMap { (name, file) ->
                    file.cases.filterNot { isLeftOut(it, isServer) }.map { case ->
                        dynamicTest("$face, $name: ${case.name}") {
                            ran += 1
                            runBlocking { run(case, face) }
                        }
                    }
                }
            tests + dynamicTest("$face: no case is forgotten") { assertEquals(suite.size, ran + leftOut) }
        }

    private fun isLeftOut(
        case: Case,
        isServer: Boolean,
    ): Boolean = (isServer && case.only == Place.Memory) || case.needs.any { it in Suite.inexpressible }
}
