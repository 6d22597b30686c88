package bench

/**
 * The protocol of a contestant: it says `ready`, then answers each line `block N` with the nanoseconds that N calls
 * took. Inlined, so that the loop over a suspending call is made of nothing but that call.
 */
internal inline fun answerBlocks(call: () -> Unit) {
    println("ready")
    while (true) {
        val line = readlnOrNull() ?: return
        val calls = line.removePrefix("block ").toInt()
        val started = System.nanoTime()
        repeat(calls) { call() }
        println(System.nanoTime() - started)
    }
}
