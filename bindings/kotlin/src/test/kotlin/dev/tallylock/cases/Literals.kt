package dev.tallylock.cases

import kotlinx.serialization.KSerializer
import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import kotlinx.serialization.descriptors.SerialDescriptor
import kotlinx.serialization.encoding.Decoder
import kotlinx.serialization.encoding.Encoder
import kotlinx.serialization.json.JsonDecoder
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonPrimitive
import java.math.BigInteger
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds

/** A text: a JSON string, or one that is repeated. */
@Serializable(with = TextSerializer::class)
class Text(val text: String)

/** Bytes: a text in UTF-8, or hexadecimal digits. */
@Serializable(with = BytesSerializer::class)
class Bytes(val bytes: ByteArray)

/** A whole number of any size, written as a text. */
@Serializable(with = AmountSerializer::class)
class Amount(val number: BigInteger) {
    /** The number as the API under test takes it. */
    val long: Long get() = number.longValueExact()
}

/** Milliseconds, maybe with a fraction. */
@Serializable(with = MillisSerializer::class)
class Millis(val duration: Duration)

/** From the least to the most, both included. */
@Serializable(with = SpanSerializer::class)
class Span(val range: LongRange)

internal object TextSerializer : LiteralSerializer<Text>() {
    override fun parse(element: JsonElement): Text = Text(textOf(element))
}

internal object BytesSerializer : LiteralSerializer<Bytes>() {
    override fun parse(element: JsonElement): Bytes {
        val hex = (element as? JsonObject)?.get("hex") ?: return Bytes(textOf(element).encodeToByteArray())
        refuseUnless(element.keys == setOf("hex")) { "there are other fields beside hex" }
        val digits = stringOf(hex)
        refuseUnless(Regex("([0-9a-f]{2})*").matches(digits)) { "$digits are no hexadecimal digits" }
        return Bytes(digits.hexToByteArray())
    }
}

internal object AmountSerializer : LiteralSerializer<Amount>() {
    override fun parse(element: JsonElement): Amount {
        val digits = stringOf(element)
        refuseUnless(Regex("0|-?[1-9][0-9]*").matches(digits)) { "$digits is no whole number" }
        return Amount(digits.toBigInteger())
    }
}

internal object MillisSerializer : LiteralSerializer<Millis>() {
    override fun parse(element: JsonElement): Millis {
        refuseUnless(element is JsonPrimitive && !element.isString) { "$element is no number" }
        val millis = element.jsonPrimitive.content.toDoubleOrNull()
        return Millis((millis ?: throw SerializationException("$element is no number")).milliseconds)
    }
}

internal object SpanSerializer : KSerializer<Span> {
    private val list = kotlinx.serialization.builtins.ListSerializer(kotlinx.serialization.serializer<Long>())
    override val descriptor: SerialDescriptor = list.descriptor

    override fun deserialize(decoder: Decoder): Span {
        val ends = list.deserialize(decoder)
        refuseUnless(ends.size == 2 && ends.all { it >= 0 }) { "$ends is no range" }
        return Span(ends[0]..ends[1])
    }

    override fun serialize(
        encoder: Encoder,
        value: Span,
    ) = list.serialize(encoder, listOf(value.range.first, value.range.last))
}

/** Reads what has more than one form in JSON. Nothing here is ever written. */
internal abstract class LiteralSerializer<T> : KSerializer<T> {
    override val descriptor: SerialDescriptor = JsonElement.serializer().descriptor

    abstract fun parse(element: JsonElement): T

    override fun deserialize(decoder: Decoder): T = parse((decoder as JsonDecoder).decodeJsonElement())

    override fun serialize(
        encoder: Encoder,
        value: T,
    ): Unit = throw SerializationException("cases are read, never written")
}

private fun textOf(element: JsonElement): String {
    if (element !is JsonObject) return stringOf(element)
    refuseUnless(element.keys == setOf("repeat", "times")) { "$element is no text" }
    val times = element.getValue("times").jsonPrimitive
    refuseUnless(!times.isString) { "$times is no number" }
    return stringOf(element.getValue("repeat")).repeat(times.content.toInt())
}

private fun stringOf(element: JsonElement): String {
    refuseUnless(element is JsonPrimitive && element.isString) { "$element is no text" }
    return element.jsonPrimitive.content
}

private inline fun refuseUnless(
    condition: Boolean,
    why: () -> String,
) {
    if (!condition) throw SerializationException(why())
}
