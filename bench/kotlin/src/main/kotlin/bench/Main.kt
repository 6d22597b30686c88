package bench

import kotlin.system.exitProcess

/** Usage: NAME redis://HOST:PORT KEY, in the root folder of tallylock. */
fun main(arguments: Array<String>) {
    val (name, url, key) = arguments
    when (name) {
        "tallylock-blocking" -> tallylockBlocking(url, key)
        "tallylock-suspend" -> tallylockSuspend(url, key)
        "lettuce-blocking" -> lettuceBlocking(url, key)
        "lettuce-suspend" -> lettuceSuspend(url, key)
        else -> {
            System.err.println("unknown contestant: $name")
            exitProcess(2)
        }
    }
}
