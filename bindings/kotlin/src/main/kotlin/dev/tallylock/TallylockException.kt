package dev.tallylock

import dev.tallylock.internal.Failure

/**
 * A failed call. There is one subclass for each [code] known to this version; a `when` over them needs an `else`, since
 * later versions may know more.
 *
 * @property code the word for the kind of error, the same in every language
 * @property key the key that the call was about, as text, shortened if very long
 * @property reason why a lease is no longer ours, where [code] is `lost`: `expired`, `taken_over`, `unreachable` or
 *   `forked`
 * @property applied whether the call may have changed something all the same
 */
public open class TallylockException internal constructor(failure: Failure) : RuntimeException(failure.detail) {
    public val code: String = failure.code
    public val key: String? = failure.key
    public val reason: String? = failure.reason
    public val applied: Applied = failure.applied

    private companion object {
        private const val serialVersionUID = 1L
    }
}

/** Whether a failed call may have changed something. */
public enum class Applied {
    /** Nothing was changed. */
    No,

    /** It is not known: the reply was lost. */
    Maybe,
}

/** `busy`: the lock was held by another until the deadline. */
public class BusyException internal constructor(failure: Failure) : TallylockException(failure)

/** `lost`: the lease is no longer ours; [reason] says why. */
public class LostException internal constructor(failure: Failure) : TallylockException(failure)

/** `already_held`: this handle holds the lock already. */
public class AlreadyHeldException internal constructor(failure: Failure) : TallylockException(failure)

/** `fenced_off`: a newer holder has been here. */
public class FencedOffException internal constructor(failure: Failure) : TallylockException(failure)

/** `conflict`: another value was given under the same name. */
public class ConflictException internal constructor(failure: Failure) : TallylockException(failure)

/** `invalid_argument`: the call itself is wrong; nothing was sent. */
public class InvalidArgumentException internal constructor(failure: Failure) : TallylockException(failure)

/** `wrong_type`: the key holds something that is not a string. */
public class WrongTypeException internal constructor(failure: Failure) : TallylockException(failure)

/** `not_an_integer`: the key holds a text that is not a whole number of 64 bits. */
public class NotAnIntegerException internal constructor(failure: Failure) : TallylockException(failure)

/** `overflow`: the sum does not fit into 64 bits. */
public class CounterOverflowException internal constructor(failure: Failure) : TallylockException(failure)

/** `timeout`: the deadline passed and nothing was applied. */
public class CallTimeoutException internal constructor(failure: Failure) : TallylockException(failure)

/** `unavailable`: the server could not be reached, or is not ready; nothing was applied. */
public class UnavailableException internal constructor(failure: Failure) : TallylockException(failure)

/** `outcome_unknown`: the request may have been applied, its reply was lost. The only one with [Applied.Maybe]. */
public class OutcomeUnknownException internal constructor(failure: Failure) : TallylockException(failure)

/** `read_only`: the server is a replica that takes no writes. */
public class ReadOnlyException internal constructor(failure: Failure) : TallylockException(failure)

/** `forbidden`: the account may not do this, or its password is wrong. */
public class ForbiddenException internal constructor(failure: Failure) : TallylockException(failure)

/** `out_of_memory`: the server is at its memory limit. */
public class OutOfMemoryException internal constructor(failure: Failure) : TallylockException(failure)

/** `unsupported`: the server or the transport cannot do this. */
public class UnsupportedException internal constructor(failure: Failure) : TallylockException(failure)

/** `cancelled`: the call was cancelled. */
public class CallCancelledException internal constructor(failure: Failure) : TallylockException(failure)

/** `closed`: the client, or the handle, is closed. */
public class ClosedException internal constructor(failure: Failure) : TallylockException(failure)
