//! Commands as JavaScript gets them, and replies as it gives them.

use js_sys::{Array, BigInt, Number, Uint8Array};
use tallylock_core::error::{Code, Error};
use tallylock_core::step::{Command, Outcome, Reply, Undelivered};
use wasm_bindgen::{JsCast, JsValue};

/// The commands in RESP: one piece of bytes, since each that crosses to JavaScript costs as much as all that is in it.
pub(crate) fn encode(commands: &[Command]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    let head = |bytes: &mut Vec<u8>, mark: u8, count: usize| {
        bytes.push(mark);
        bytes.extend_from_slice(count.to_string().as_bytes());
        bytes.extend_from_slice(b"\r\n");
    };
    for command in commands {
        head(&mut bytes, b'*', command.len());
        for argument in command {
            head(&mut bytes, b'$', argument.len());
            bytes.extend_from_slice(argument);
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes
}

/// One reply a command; a transport that gives something else has delivered nobody knows what.
pub(crate) fn outcome(replies: &JsValue) -> Outcome {
    let understood = replies
        .dyn_ref::<Array>()
        .and_then(|replies| replies.iter().map(|reply| parse(&reply)).collect());
    understood.ok_or_else(|| {
        Undelivered::MaybeSent("the transport answered with something that is no reply".into())
    })
}

/// Why there are no replies, in the words of a transport: `sent` is `no`, `refused`, or anything else for `maybe`.
///
/// A refusal has either the server's own words or ours.
pub(crate) fn undelivered(sent: &str, message: String, server_words: Option<&str>) -> Undelivered {
    match sent {
        "no" => Undelivered::NotSent(message),
        "refused" => refused(message, server_words),
        _ => Undelivered::MaybeSent(message),
    }
}

fn refused(message: String, server_words: Option<&str>) -> Undelivered {
    let Some(words) = server_words else {
        return Undelivered::Refused(Error::new(Code::Unavailable, message));
    };
    let error = Error::from_reply(words);
    match error.code() {
        // Not ready yet, or too many connections: a little later it may be different.
        Code::Unavailable => Undelivered::NotSent(words.into()),
        Code::Unsupported if is_about_database(words) => Undelivered::Refused(Error::new(
            Code::InvalidArgument,
            format!("the server refuses the database: {words}"),
        )),
        _ => Undelivered::Refused(error),
    }
}

fn is_about_database(words: &str) -> bool {
    words.as_bytes().windows(8).any(|part| part == b"DB index")
}

fn parse(reply: &JsValue) -> Option<Reply> {
    if reply.is_null() {
        return Some(Reply::Nil);
    }
    if let Some(bytes) = reply.dyn_ref::<Uint8Array>() {
        return Some(Reply::Text(bytes.to_vec()));
    }
    if let Some(text) = reply.as_string() {
        return Some(Reply::Text(text.into_bytes()));
    }
    if let Some(number) = reply.as_f64() {
        // A number that JavaScript may have rounded is no number of the server's.
        return Number::is_safe_integer(reply).then_some(Reply::Integer(number as i64));
    }
    if let Some(number) = reply.dyn_ref::<BigInt>() {
        return i64::try_from(number.clone()).ok().map(Reply::Integer);
    }
    if let Some(parts) = reply.dyn_ref::<Array>() {
        return parts
            .iter()
            .map(|part| parse(&part))
            .collect::<Option<_>>()
            .map(Reply::Array);
    }
    reply
        .dyn_ref::<js_sys::Error>()
        .map(|error| Reply::Error(error.message().into()))
}
