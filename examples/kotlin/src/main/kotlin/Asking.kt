package flights

import dev.tallylock.TallylockException
import kotlinx.coroutines.delay
import kotlin.time.Duration.Companion.milliseconds

// What may be asked again after: none of these says that it can't be done.
private val askAgain = setOf("outcome_unknown", "unavailable", "timeout")
private const val ATTEMPTS = 20
private val betweenAttempts = 100.milliseconds

/** Does what is harmless to do twice, again if it may not have been done. */
suspend fun <T> asking(ask: suspend () -> T): T {
    repeat(ATTEMPTS - 1) {
        try {
            return ask()
        } catch (error: TallylockException) {
            if (error.code !in askAgain) {
                throw error
            }
        }
        delay(betweenAttempts)
    }
    return ask()
}
