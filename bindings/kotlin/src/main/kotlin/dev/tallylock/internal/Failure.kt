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
import dev.tallylock.ffi.CallException

/** What a failed call says, as it came across the boundary. */
internal class Failure(
    val code: String,
    val reason: String?,
    val key: String?,
    val detail: String,
    applied: String,
) {
    /** A word that this version does not know is no promise that nothing was changed. */
    val applied: Applied = if (applied == "no") Applied.No else Applied.Maybe

    /** The exception for this failure, with the stack of the caller. */
    fun toException(): TallylockException =
        when (code) {
            "busy" -> BusyException(this)
            "lost" -> LostException(this)
            "already_held" -> AlreadyHeldException(this)
            "fenced_off" -> FencedOffException(this)
            "conflict" -> ConflictException(this)
            "invalid_argument" -> InvalidArgumentException(this)
            "wrong_type" -> WrongTypeException(this)
            "not_an_integer" -> NotAnIntegerException(this)
            "overflow" -> CounterOverflowException(this)
            "timeout" -> CallTimeoutException(this)
            "unavailable" -> UnavailableException(this)
            "outcome_unknown" -> OutcomeUnknownException(this)
            "read_only" -> ReadOnlyException(this)
            "forbidden" -> ForbiddenException(this)
            "out_of_memory" -> OutOfMemoryException(this)
            "unsupported" -> UnsupportedException(this)
            "cancelled" -> CallCancelledException(this)
            "closed" -> ClosedException(this)
            else -> TallylockException(this)
        }
}

/** What the boundary's own exception says. */
internal fun CallException.toFailure(): Failure =
    when (this) {
        is CallException.Failed -> Failure(code, reason, key, detail, applied)
    }

/**
 * The refusal of an argument that cannot cross the boundary, in the words that the core has for others.
 *
 * @param key what the call was about, as text
 */
internal fun invalidArgument(
    key: String?,
    why: String,
): TallylockException =
    Failure(
        code = "invalid_argument",
        reason = null,
        key = key,
        detail =
            "invalid_argument${if (key == null) "" else ", key \"$key\""}: $why; " +
                "correct the argument; nothing was sent",
        applied = "no",
    ).toException()

/** Runs a call across the boundary; its failure becomes one of the public exceptions. */
internal inline fun <T> translated(call: () -> T): T =
    try {
        call()
    } catch (exception: CallException) {
        throw exception.toFailure().toException()
    }
