//! What a new connection says first: who it is, which database it wants, and its name.

use redis::{Cmd, cmd};
use tallylock_core::error::{Code, Error};
use tallylock_core::step::{Reply, Undelivered};

use crate::endpoint::Endpoint;

/// The name under which `CLIENT LIST` shows a connection.
const NAME: &str = "tallylock";

/// A command of the handshake.
pub(crate) struct Greeting {
    pub(crate) command: Cmd,
    asks: Asks,
}

#[derive(Clone, Copy)]
enum Asks {
    Authentication,
    Database(i64),
    Name,
}

impl Endpoint {
    /// What a new connection says first, in this order; it is open once each reply was accepted.
    pub(crate) fn greetings(&self) -> Vec<Greeting> {
        let mut greetings = Vec::with_capacity(3);
        if let Some(password) = &self.password {
            let mut command = cmd("AUTH");
            command.arg(self.user.as_deref()).arg(password);
            greetings.push(Greeting {
                command,
                asks: Asks::Authentication,
            });
        }
        if self.database != 0 {
            let mut command = cmd("SELECT");
            command.arg(self.database);
            greetings.push(Greeting {
                command,
                asks: Asks::Database(self.database),
            });
        }
        let mut command = cmd("CLIENT");
        command.arg("SETNAME").arg(NAME);
        greetings.push(Greeting {
            command,
            asks: Asks::Name,
        });
        greetings
    }
}

impl Greeting {
    /// Whether the connection may go on after this reply.
    pub(crate) fn accept(&self, reply: &Reply) -> Result<(), Undelivered> {
        let Reply::Error(text) = reply else {
            return Ok(());
        };
        let error = Error::from_reply(text);
        match (self.asks, error.code()) {
            // A server that knows no AUTH repeats what it was sent: that is the password.
            (Asks::Authentication, _) if text.contains("unknown command") => Err(
                Undelivered::Refused(Error::new(Code::Unsupported, "the server knows no AUTH")),
            ),
            // Not ready yet, or too many connections: a little later it may be different.
            (_, Code::Unavailable) => Err(Undelivered::NotSent(format!("the server said: {text}"))),
            // Whoever may not name its connection, or whose server knows no names, can work all the same.
            (Asks::Name, _) if !text.starts_with("NOAUTH") => Ok(()),
            (Asks::Database(number), Code::Unsupported) => Err(Undelivered::Refused(Error::new(
                Code::InvalidArgument,
                format!("the server refuses database {number}: {text}"),
            ))),
            _ => Err(Undelivered::Refused(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Target;

    fn greetings(url: &str) -> Vec<Greeting> {
        match Target::parse(url).unwrap() {
            Target::Server(endpoint) => endpoint.greetings(),
            Target::Memory { .. } => panic!("{url} is a server"),
        }
    }

    fn words(url: &str) -> Vec<String> {
        let packed = greetings(url)
            .into_iter()
            .map(|greeting| greeting.command.get_packed_command());
        packed
            .map(|bytes| String::from_utf8(bytes).unwrap().replace("\r\n", " "))
            .collect()
    }

    #[test]
    fn says_no_more_than_is_needed() {
        assert_eq!(
            words("redis://h"),
            ["*3 $6 CLIENT $7 SETNAME $9 tallylock "]
        );
        let full = words("redis://alice:secret@h/3");
        assert_eq!(full[0], "*3 $4 AUTH $5 alice $6 secret ");
        assert_eq!(full[1], "*2 $6 SELECT $1 3 ");
        assert_eq!(words("redis://:secret@h")[0], "*2 $4 AUTH $6 secret ");
    }

    fn refusal(greeting: &Greeting, text: &str) -> Code {
        match greeting.accept(&Reply::Error(text.into())) {
            Err(Undelivered::Refused(error)) => error.code(),
            other => panic!("{text} gives {other:?}"),
        }
    }

    #[test]
    fn a_refusal_ends_it_and_a_busy_server_does_not() {
        let [auth, select, name] = &greetings("redis://:secret@h/99")[..] else {
            panic!("three greetings")
        };
        assert_eq!(
            refusal(
                auth,
                "WRONGPASS invalid username-password pair or user is disabled."
            ),
            Code::Forbidden
        );
        assert_eq!(
            refusal(
                auth,
                "ERR AUTH <password> called without any password configured"
            ),
            Code::Forbidden
        );
        let unknown =
            Reply::Error("ERR unknown command 'AUTH', with args beginning with: 'secret' ".into());
        let said = format!("{:?}", auth.accept(&unknown));
        assert!(said.contains("AUTH") && !said.contains("secret"), "{said}");
        assert_eq!(
            refusal(select, "ERR DB index is out of range"),
            Code::InvalidArgument
        );
        assert_eq!(
            refusal(
                select,
                "NOPERM this user has no permissions to run the 'select' command"
            ),
            Code::Forbidden
        );
        assert_eq!(
            refusal(name, "NOAUTH Authentication required."),
            Code::Forbidden
        );
        assert_eq!(
            name.accept(&Reply::Error("NOPERM this user has no permissions".into())),
            Ok(())
        );
        let full = Reply::Error("ERR max number of clients reached".into());
        assert!(matches!(name.accept(&full), Err(Undelivered::NotSent(_))));
    }
}
