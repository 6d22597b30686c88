//! Commands and replies between core's words and redis-rs's.

use redis::{Cmd, Value};
use tallylock_core::step::{Command, Reply};

/// Adds the words of a command to one of redis-rs.
pub(crate) fn pack(command: &Command, packed: &mut Cmd) {
    for word in command {
        packed.arg(word.as_ref());
    }
}

/// A command as redis-rs sends it.
pub(crate) fn command(command: &Command) -> Cmd {
    let bytes = command.iter().map(|word| word.len()).sum();
    let mut packed = Cmd::with_capacity(command.len(), bytes);
    pack(command, &mut packed);
    packed
}

/// A reply as core reads it.
pub(crate) fn reply(value: Value) -> Reply {
    match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Integer(number),
        Value::BulkString(bytes) => Reply::Text(bytes),
        Value::SimpleString(text) => Reply::Text(text.into_bytes()),
        Value::Okay => Reply::Text(b"OK".to_vec()),
        Value::Array(values) => Reply::Array(values.into_iter().map(reply).collect()),
        Value::ServerError(error) => Reply::Error(match error.details() {
            Some(details) => format!("{} {details}", error.code()),
            None => error.code().to_owned(),
        }),
        // Only RESP3 has more, and connections speak RESP2.
        other => Reply::Error(format!("ERR a reply of an unknown kind: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Reply {
        reply(redis::parse_redis_value(bytes).unwrap())
    }

    #[test]
    fn replies_keep_their_meaning() {
        assert_eq!(parsed(b"$-1\r\n"), Reply::Nil);
        assert_eq!(
            parsed(b":-9223372036854775808\r\n"),
            Reply::Integer(i64::MIN)
        );
        assert_eq!(parsed(b"$2\r\n\xff\x00\r\n"), Reply::Text(vec![0xff, 0]));
        assert_eq!(parsed(b"+OK\r\n"), Reply::Text(b"OK".to_vec()));
        assert_eq!(
            parsed(b"*2\r\n$1\r\na\r\n:1\r\n"),
            Reply::Array(vec![Reply::Text(b"a".to_vec()), Reply::Integer(1)])
        );
    }

    #[test]
    fn errors_keep_the_servers_words() {
        for text in [
            "NOSCRIPT No matching script. Please use EVAL.",
            "ERR Error running script (call to f_abc): @user_script:7: WRONGTYPE Operation against a key",
            "WRONGPASS invalid username-password pair",
            "MOVED 3999 127.0.0.1:6381",
            "LOADING",
        ] {
            assert_eq!(
                parsed(format!("-{text}\r\n").as_bytes()),
                Reply::Error(text.into())
            );
        }
    }

    #[test]
    fn a_command_is_packed_word_by_word() {
        let words = vec![b"GET".as_slice().into(), vec![0xff, b'\n'].into()];
        assert_eq!(
            command(&words).get_packed_command(),
            b"*2\r\n$3\r\nGET\r\n$2\r\n\xff\n\r\n"
        );
    }
}
