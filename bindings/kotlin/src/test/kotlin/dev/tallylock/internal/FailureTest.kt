package dev.tallylock.internal

import dev.tallylock.AlreadyHeldException
import dev.tallylock.Applied
import dev.tallylock.BusyException
import dev.tallylock.CallCancelledException
import dev.tallylock.CallTimeoutException
import dev.tallylock.ClosedException
import dev.tallylock.ConflictException
import dev.tallylock.CounterOverflowException
import dev.tallylock.FencedOffException
import dev.tallylock.ForbiddenException
import dev.tallylock.InvalidArgumentException
import dev.tallylock.LostException
import dev.tallylock.NotAnIntegerException
import dev.tallylock.OutOfMemoryException
import dev.tallylock.OutcomeUnknownException
import dev.tallylock.ReadOnlyException
import dev.tallylock.TallylockException
import dev.tallylock.UnavailableException
import dev.tallylock.UnsupportedException
import dev.tallylock.WrongTypeException
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

class FailureTest {
    @Test
    fun eachCodeHasItsClass() {
        val classes =
            mapOf(
                "busy" to BusyException::class,
                "lost" to LostException::class,
                "already_held" to AlreadyHeldException::class,
                "fenced_off" to FencedOffException::class,
                "conflict" to ConflictException::class,
                "invalid_argument" to InvalidArgumentException::class,
                "wrong_type" to WrongTypeException::class,
                "not_an_integer" to NotAnIntegerException::class,
                "overflow" to CounterOverflowException::class,
                "timeout" to CallTimeoutException::class,
                "unavailable" to UnavailableException::class,
                "outcome_unknown" to OutcomeUnknownException::class,
                "read_only" to ReadOnlyException::class,
                "forbidden" to ForbiddenException::class,
                "out_of_memory" to OutOfMemoryException::class,
                "unsupported" to UnsupportedException::class,
                "cancelled" to CallCancelledException::class,
                "closed" to ClosedException::class,
                "of_a_later_version" to TallylockException::class,
            )
        for ((code, expected) in classes) {
            val exception = failure(code, "no").toException()
            assertEquals(expected, exception::class)
            assertEquals(code, exception.code)
        }
    }

    @Test
    fun onlyNoPromisesThatNothingWasChanged() {
        assertEquals(Applied.No, failure("busy", "no").applied)
        assertEquals(Applied.Maybe, failure("outcome_unknown", "maybe").applied)
        assertEquals(Applied.Maybe, failure("of_a_later_version", "of a later version").applied)
    }

    private fun failure(
        code: String,
        applied: String,
    ) = Failure(code, null, null, "detail", applied)
}
