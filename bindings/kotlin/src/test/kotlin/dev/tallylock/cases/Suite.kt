package dev.tallylock.cases

import dev.tallylock.testing.Repository
import kotlinx.serialization.json.Json
import java.nio.file.Files
import java.nio.file.Path
import kotlin.io.path.listDirectoryEntries
import kotlin.io.path.name

/** The cases that the index lists, all of them, parsed and checked. */
class Suite private constructor(
    val index: Index,
    val files: Map<String, CaseFile>,
) {
    /** How many cases the index lists. */
    val size: Int = index.files.sumOf { it.cases }

    companion object {
        /** What the types of Kotlin cannot express: an amount is a `Long`. */
        val inexpressible: Set<Need> = setOf(Need.BigAmount)

        private val notCases = setOf("index.json", "schema.json")

        fun load(): Suite {
            val index = Json.decodeFromString<Index>(Files.readString(Repository.cases.resolve("index.json")))
            val there =
                Repository.cases
                    .listDirectoryEntries("*.json")
                    .map { it.name }
                    .toSet() - notCases
            val listed = index.files.map { it.file }.toSet()
            check(there == listed) { "the index and the folder differ in ${(there - listed) + (listed - there)}" }
            val badThere =
                Repository.badCases
                    .listDirectoryEntries("*.json")
                    .map { it.name }
                    .toSet()
            val badListed = index.bad.map { it.file }.toSet()
            check(
                badThere == badListed,
            ) { "the index and cases-bad differ in ${(badThere - badListed) + (badListed - badThere)}" }
            val files = index.files.associate { it.file to parse(Repository.cases.resolve(it.file)) }
            for (listing in index.files) {
                val found = files.getValue(listing.file).cases.size
                check(found == listing.cases) { "${listing.file} has $found cases, the index lists ${listing.cases}" }
            }
            return Suite(index, files)
        }

        /**
         * Parses and checks a file.
         *
         * @throws IllegalArgumentException if it is not one of well-formed cases
         */
        fun parse(path: Path): CaseFile {
            val file = Json.decodeFromString<CaseFile>(Files.readString(path))
            requireUnique(file.cases.map { it.name }, "case")
            file.cases.forEach(::checkCase)
            return file
        }
    }
}

/** What the shape alone does not say: names are declared before they are used, and servers are spared. */
private fun checkCase(case: Case) {
    require(case.steps.isNotEmpty() && case.handles.isNotEmpty()) { "a case has handles and steps" }
    requireUnique(case.handles.map { it.name }, "handle")
    val handles = case.handles.associateBy { it.name }
    checkSteps(case.steps, handles, mutableSetOf(), mutableSetOf())
    if (case.only == null) {
        val steps = case.steps.flatMap { if (it is Step.Block) it.inside + it else listOf(it) }
        require(steps.none { it is Step.LoseNextReply }) { "${case.name}: a server loses no reply at command" }
        val waited = steps.filterIsInstance<Step.Advance>().sumOf { it.with.ms }
        require(waited <= LONGEST_REAL_WAIT) { "${case.name}: $waited ms of real waiting are too many" }
    }
}

private fun checkSteps(
    steps: List<Step>,
    handles: Map<String, Handle>,
    leases: MutableSet<String>,
    tokens: MutableSet<String>,
) {
    for (step in steps) {
        when (step) {
            is Step.OnCounter -> require(handles[step.on] is Handle.Counter) { "${step.on} is no counter" }
            is Step.OnValue -> require(handles[step.on] is Handle.Value) { "${step.on} is no value" }
            is Step.OnGuarded -> require(handles[step.on] is Handle.Guarded) { "${step.on} is no guarded value" }
            is Step.OnLock -> require(handles[step.on] is Handle.Lock) { "${step.on} is no lock" }
            is Step.OnLease -> require(step.on in leases) { "${step.on} is no lease" }
            is Step.AddMany ->
                step.with.entries.forEach {
                    require(handles[it.on] is Handle.Counter) { "${it.on} is no counter" }
                }
            else -> {}
        }
        when (step) {
            is Step.Acquire -> step.`as`?.let(leases::add)
            is Step.Block -> checkSteps(step.inside, handles, (leases + setOfNotNull(step.`as`)).toMutableSet(), tokens)
            is Step.Inspect -> step.seen?.let(tokens::add)
            is Step.Steal -> step.with.seen?.let { require(it in tokens) { "$it was not seen" } }
            is Step.Adopt -> {
                step.with.given?.let { require(it in tokens) { "$it was not given" } }
                step.`as`?.let(leases::add)
            }
            is Step.Transfer -> step.`as`?.let(tokens::add)
            is Step.Fence ->
                listOfNotNull(step.expect.above, step.expect.equals).forEach {
                    require(it in leases) { "$it is no lease" }
                }
            else -> {}
        }
    }
}

private fun requireUnique(
    names: List<String>,
    what: String,
) = require(names.size == names.toSet().size) { "two ${what}s have one name" }

private const val LONGEST_REAL_WAIT = 300L
