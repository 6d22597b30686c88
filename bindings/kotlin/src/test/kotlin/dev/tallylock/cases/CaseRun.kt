package dev.tallylock.cases

import dev.tallylock.AddResult
import dev.tallylock.Added
import dev.tallylock.Claim
import dev.tallylock.Renewal
import dev.tallylock.TallylockException
import dev.tallylock.testing.FaceClient
import dev.tallylock.testing.FaceCounter
import dev.tallylock.testing.FaceGuarded
import dev.tallylock.testing.FaceHolder
import dev.tallylock.testing.FaceLease
import dev.tallylock.testing.FaceLock
import dev.tallylock.testing.FaceValue
import dev.tallylock.testing.Found
import dev.tallylock.testing.Listed
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertTrue
import java.math.BigInteger
import kotlin.time.Duration.Companion.milliseconds

/** One case, run on a client and the world around it. */
class CaseRun(
    private val case: Case,
    private val client: FaceClient,
    private val world: World,
) {
    private val opened = mutableMapOf<String, Any>()
    private val tokens = mutableMapOf<String, ByteArray>()
    private val given = mutableMapOf<String, String>()

    /** Runs the case; fails with an [AssertionError] if anything comes out otherwise. */
    suspend fun run() {
        case.given.forEach(world::plant)
        runSteps(case.steps, mutableMapOf())
        checkLeft()
    }

    private suspend fun runSteps(
        steps: List<Step>,
        leases: MutableMap<String, FaceLease>,
    ) = steps.forEach { runStep(it, leases) }

    private suspend fun runStep(
        step: Step,
        leases: MutableMap<String, FaceLease>,
    ) {
        when (step) {
            is Step.OnCounter -> runOnCounter(step)
            is Step.OnClient -> runOnClient(step)
            is Step.OnValue -> runOnValue(step)
            is Step.OnGuarded -> runOnGuarded(step)
            is Step.Inspect -> runInspect(step)
            is Step.Steal -> runSteal(step)
            is Step.Acquire ->
                expecting(step.error) {
                    val wait = step.with.wait?.duration
                    leases[step.`as` ?: UNNAMED] = handle<FaceLock>(step.on).acquire(wait)
                }
            is Step.Adopt ->
                expecting(step.error) {
                    val token = step.with.token ?: given.getValue(step.with.given ?: UNNAMED)
                    leases[step.`as` ?: UNNAMED] = handle<FaceLock>(step.on).adopt(token)
                }
            is Step.Block -> runBlock(step, leases)
            is Step.OnLease -> runOnLease(step, leases)
            is Step.Advance -> world.advance(step.with.ms.milliseconds)
            is Step.Planting -> world.plant(step.with)
            is Step.Remove -> world.remove(step.with.key.text)
            is Step.LoseNextReply -> world.loseNextReply()
        }
    }

    private suspend fun runOnCounter(step: Step.OnCounter) =
        expecting(step.error) {
            val counter = handle<FaceCounter>(step.on)
            when (step) {
                is Step.Add -> {
                    val total = counter.add(step.with.amount.long)
                    step.expect?.let { assertEquals(it.total.number, total.big()) }
                }
                is Step.AddOnce -> {
                    val added = counter.add(step.with.amount.long, step.with.id.text, step.with.remember?.duration)
                    step.expect?.let { assertEquals(Added(it.total.long, it.applied), added) }
                }
                is Step.Read -> {
                    val total = counter.read()
                    step.expect?.let { assertEquals(it.total?.number, total?.big()) }
                }
                is Step.Drain -> {
                    val amount = counter.drain(step.with.fence?.long)
                    step.expect?.let { assertEquals(it.amount?.number, amount?.big()) }
                }
                is Step.Finish -> {
                    val amount = counter.finish()
                    step.expect?.let { assertEquals(it.amount?.number, amount?.big()) }
                }
                is Step.Claim -> {
                    val claim = counter.claim(step.with.id.text, step.with.fence?.long)
                    step.expect?.let { assertEquals(it.claim?.run { Claim(amount.long, state.state) }, claim) }
                }
                is Step.Commit -> counter.commit(step.with.id.text, step.with.amount.long)
                is Step.Abort -> {
                    val amount = counter.abort(step.with.id.text, step.with.fence?.long)
                    step.expect?.let { assertEquals(it.amount.number, amount.big()) }
                }
                is Step.Claims -> {
                    val claims = counter.claims()
                    step.expect?.let { expected ->
                        assertEquals(expected.claims.map { Listed(it.id.text, it.amount.long) }, claims)
                    }
                }
            }
        }

    private suspend fun runOnClient(step: Step.OnClient) =
        expecting(step.error) {
            when (step) {
                is Step.AddMany -> {
                    val entries =
                        step.with.entries.map { handle<FaceCounter>(it.on).entry(it.amount.long, it.id?.text) }
                    val results = client.addMany(entries)
                    step.expect?.let { assertResults(it.results, results) }
                }
                is Step.Scan -> {
                    val found = client.scan(step.with.pattern.text)
                    step.expect?.let { assertFound(it.counters, found) }
                }
                is Step.Expiring -> {
                    val found = client.expiring(step.with.pattern.text, step.with.within.duration)
                    step.expect?.let { assertFound(it.counters, found) }
                }
            }
        }

    private fun assertResults(
        expected: List<ResultExpectation>,
        results: List<AddResult>,
    ) {
        assertEquals(expected.size, results.size, "results")
        for ((one, result) in expected.zip(results)) {
            when (result) {
                is AddResult.Success -> {
                    assertNull(one.code, "it succeeded")
                    assertEquals(one.total?.number, result.added.total.big())
                    assertEquals(one.applied, result.added.applied)
                }
                is AddResult.Failure -> assertEquals(one.code, result.exception.code, result.exception.message)
            }
        }
    }

    /** What is found may be found twice, and in any order. */
    private fun assertFound(
        expected: List<ListedCounter>,
        found: List<Listed>,
    ) = assertEquals(expected.map { Listed(it.key.text, it.total.long) }, found.distinct().sortedBy { it.name })

    private suspend fun runOnValue(step: Step.OnValue) =
        expecting(step.error) {
            val value = handle<FaceValue>(step.on)
            when (step) {
                is Step.Get -> {
                    val found = value.get()
                    step.expect?.let { assertArrayEquals(it.value?.bytes, found) }
                }
                is Step.ReplaceIfPresent -> {
                    val done = value.replaceIfPresent(step.with.value.bytes, step.with.ttl.duration)
                    step.expect?.let { assertEquals(it.done, done) }
                }
                is Step.Touch -> {
                    val done = value.touch(step.with.ttl.duration)
                    step.expect?.let { assertEquals(it.done, done) }
                }
                is Step.CompareAndSet -> {
                    val arguments = step.with
                    val done =
                        value.compareAndSet(arguments.expected.bytes, arguments.value.bytes, arguments.ttl.duration)
                    step.expect?.let { assertEquals(it.done, done) }
                }
                is Step.Update -> {
                    val written = value.update(step.with.ttl.duration) { it + step.with.append.bytes }
                    step.expect?.let { assertArrayEquals(it.value?.bytes, written) }
                }
            }
        }

    private suspend fun runOnGuarded(step: Step.OnGuarded) =
        expecting(step.error) {
            val guarded = handle<FaceGuarded>(step.on)
            when (step) {
                is Step.GuardedSet ->
                    guarded.set(step.with.value.bytes, step.with.fence.long, step.with.ttl.duration)
                is Step.GuardedDelete -> {
                    val done = guarded.delete(step.with.fence.long)
                    step.expect?.let { assertEquals(it.done, done) }
                }
            }
        }

    private suspend fun runInspect(step: Step.Inspect) =
        expecting(step.error) {
            val holder = handle<FaceLock>(step.on).inspect()
            holder?.let { tokens[step.seen ?: UNNAMED] = it.token }
            step.expect?.let { assertHolder(it.holder, holder) }
        }

    private suspend fun runSteal(step: Step.Steal) =
        expecting(step.error) {
            val token = step.with.token?.bytes ?: tokens.getValue(step.with.seen ?: UNNAMED)
            val fence = handle<FaceLock>(step.on).steal(token, step.with.reason)
            step.expect?.let { assertMatches(it.fence, fence) }
        }

    private fun assertHolder(
        expected: HolderExpectation?,
        holder: FaceHolder?,
    ) {
        if (expected == null || holder == null) {
            assertEquals(expected == null, holder == null, "nobody holds it")
            return
        }
        assertMatches(expected.token, holder.token.decodeToString())
        assertMatches(expected.label, holder.label)
        assertMatches(expected.fence, holder.fence)
        val remaining = holder.remaining?.inWholeMilliseconds
        if (expected.remaining == null) {
            assertNull(remaining, "the remaining time")
        } else {
            assertTrue(remaining != null && remaining in expected.remaining.range, "$remaining ms remain")
        }
    }

    private fun assertMatches(
        pattern: String?,
        found: Any?,
    ) = if (pattern == null) {
        assertNull(found)
    } else {
        assertTrue(found != null && Regex(pattern).containsMatchIn("$found"), "$found does not match $pattern")
    }

    private suspend fun runOnLease(
        step: Step.OnLease,
        leases: Map<String, FaceLease>,
    ) {
        val lease = leases.getValue(step.on)
        when (step) {
            is Step.Extend -> expecting(step.error) { lease.extend(step.with.ttl?.duration) }
            is Step.Release -> expecting(step.error) { lease.release() }
            is Step.Transfer -> expecting(step.error) { given[step.`as` ?: UNNAMED] = lease.transfer() }
            is Step.Verify -> expecting(step.error) { lease.verify(step.with.margin.duration) }
            is Step.Ensure -> expecting(step.error) { lease.ensure(step.with.margin.duration) }
            is Step.Fence -> {
                step.expect.`is`?.let { assertEquals(it.number, lease.fence.big()) }
                step.expect.equals?.let { other -> assertEquals(leases.getValue(other).fence, lease.fence) }
                step.expect.above?.let { other ->
                    assertTrue(lease.fence > leases.getValue(other).fence, "the fence is not above that of $other")
                }
            }
            is Step.Remaining -> {
                val remaining = lease.remaining
                assertTrue(remaining.inWholeMilliseconds in step.expect.ms.range, "$remaining remain")
                assertEquals(remaining.isPositive(), lease.isValid)
            }
        }
    }

    private suspend fun runBlock(
        step: Step.Block,
        leases: Map<String, FaceLease>,
    ) = expecting(step.error) {
        val lock = handle<FaceLock>(step.on)
        val raised = if (step.raises) RaisedInside() else null
        val caught =
            try {
                lock.withLock(step.with.wait?.duration) { lease ->
                    assertNull(step.error, "the block was entered")
                    val known = leases.toMutableMap()
                    step.`as`?.let { known[it] = lease }
                    runSteps(step.inside, known)
                    raised?.let { throw it }
                }
                null
            } catch (raised: RaisedInside) {
                raised
            }
        assertSame(raised, caught)
    }

    /** Runs what must succeed, or must fail with this error. */
    private suspend fun expecting(
        error: ExpectedError?,
        run: suspend () -> Unit,
    ) {
        val thrown =
            try {
                run()
                null
            } catch (exception: TallylockException) {
                exception
            }
        if (error == null) {
            return thrown?.let { throw AssertionError("it failed", it) } ?: Unit
        }
        if (thrown == null) throw AssertionError("it succeeded instead of ${error.code}")
        assertEquals(error.code, thrown.code, thrown.message)
        assertEquals(error.applied.applied, thrown.applied, thrown.message)
        assertEquals(error.reason?.word, thrown.reason, thrown.message)
        for (text in error.mentions) {
            assertTrue(text in thrown.message.orEmpty(), "${thrown.message} does not mention $text")
        }
    }

    /** The handle of this name, opened when it is first used: what refuses it is the error of that step. */
    private inline fun <reified T> handle(name: String): T =
        opened.getOrPut(name) { open(case.handles.first { it.name == name }) } as T

    private fun open(handle: Handle): Any =
        when (handle) {
            is Handle.Counter -> client.counter(handle.key.text, handle.ttl.duration, handle.expiry?.expiry)
            is Handle.Value -> client.value(handle.key.text)
            is Handle.Guarded -> client.guarded(handle.key.text)
            is Handle.Lock -> {
                val renewal = if (handle.renewal) Renewal.Default else Renewal.Off
                client.lock(handle.key.text, handle.ttl.duration, renewal)
            }
        }

    private fun checkLeft() {
        val found = world.keys().associateBy { it.key.decodeToString() }
        assertEquals(case.left.map { it.key.text }.toSet(), found.keys, "the keys that are left")
        for (left in case.left) {
            checkLeft(left, found.getValue(left.key.text))
        }
    }

    private fun checkLeft(
        left: Left,
        found: Found,
    ) {
        val name = left.key.text.take(SHOWN)
        val text = found.value?.decodeToString()
        when {
            left.value != null -> assertArrayEquals(left.value.bytes, found.value, "the value of $name")
            left.pattern != null ->
                assertTrue(
                    text != null && Regex(left.pattern).containsMatchIn(text),
                    "$name is $text",
                )
            else -> assertNull(found.value, "$name is a string")
        }
        val ttl = found.ttl
        if (left.ttlMs == null) {
            assertNull(ttl, "the TTL of $name")
        } else {
            assertTrue(ttl != null && ttl.inWholeMilliseconds in left.ttlMs.range, "the TTL of $name is $ttl")
        }
    }

    private class RaisedInside : Exception("raised inside the block")

    private companion object {
        const val UNNAMED = ""
        const val SHOWN = 60
    }
}

private fun Long.big(): BigInteger = BigInteger.valueOf(this)
