//! The proxy's commands as text, one a line, and its answers as JSON, one a line.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

/// Each line that the proxy understands, for its help and its error messages.
pub const COMMANDS: &str = "\
lose <n>                      swallow the reply to the n-th request from now, then cut its connection
lose-matching <text>          the same for the next request that contains the text
hold                          let no reply pass until `go`
hold-matching <text>          hold the reply to the next request that contains the text
go                            let all held replies pass
cut                           cut all connections now
half-close                    end the replies of all connections now; their requests still reach the server
half-close-matching <text>    the same for the connection of the next request that contains the text, instead of its reply
cut-before <n>                cut before the n-th request from now reaches the server
cut-before-matching <text>    the same for the next request that contains the text
refuse                        refuse new connections
accept                        accept them again
delay <milliseconds>          let no reply pass before its request is that old
await-held <n>                wait until n replies are held
await-lost <n>                wait until n replies were lost in all
stats                         what has passed so far";

/// What a test asks the proxy to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Lose the reply to the n-th request from now, and cut its connection.
    Lose(u64),
    /// Lose the reply to the next request that contains the text, and cut its connection.
    LoseMatching(String),
    /// Hold all replies.
    Hold,
    /// Hold the reply to the next request that contains the text, and those behind it.
    HoldMatching(String),
    /// Let all held replies pass.
    Go,
    /// Cut all connections now.
    Cut,
    /// End the replies of all connections now; their requests still reach the server.
    HalfClose,
    /// The same for the connection of the next request that contains the text, instead of its reply.
    HalfCloseMatching(String),
    /// Cut before the n-th request from now reaches the server.
    CutBefore(u64),
    /// Cut before the next request that contains the text reaches the server.
    CutBeforeMatching(String),
    /// Refuse new connections.
    Refuse,
    /// Accept new connections again.
    Accept,
    /// Let no reply pass before its request is that old.
    Delay(Duration),
    /// Wait until that many replies are held.
    AwaitHeld(usize),
    /// Wait until that many replies were lost.
    AwaitLost(u64),
    /// Tell what has passed so far.
    Stats,
}

impl FromStr for Command {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "lose" => number(rest).map(Self::Lose),
            "lose-matching" => text(rest).map(Self::LoseMatching),
            "hold" => nothing(rest, Self::Hold),
            "hold-matching" => text(rest).map(Self::HoldMatching),
            "go" => nothing(rest, Self::Go),
            "cut" => nothing(rest, Self::Cut),
            "half-close" => nothing(rest, Self::HalfClose),
            "half-close-matching" => text(rest).map(Self::HalfCloseMatching),
            "cut-before" => number(rest).map(Self::CutBefore),
            "cut-before-matching" => text(rest).map(Self::CutBeforeMatching),
            "refuse" => nothing(rest, Self::Refuse),
            "accept" => nothing(rest, Self::Accept),
            "delay" => whole(rest).map(|delay| Self::Delay(Duration::from_millis(delay))),
            "await-held" => number(rest).and_then(|count| {
                let count = usize::try_from(count).map_err(|error| error.to_string())?;
                Ok(Self::AwaitHeld(count))
            }),
            "await-lost" => number(rest).map(Self::AwaitLost),
            "stats" => nothing(rest, Self::Stats),
            _ => Err(format!("no command {name:?}; there are:\n{COMMANDS}")),
        }
    }
}

fn nothing(rest: &str, command: Command) -> Result<Command, String> {
    if rest.is_empty() {
        return Ok(command);
    }
    Err(format!("{rest:?} is one word too many"))
}

fn text(rest: &str) -> Result<String, String> {
    if rest.is_empty() {
        return Err("a text must follow".to_owned());
    }
    Ok(rest.to_owned())
}

fn number(rest: &str) -> Result<u64, String> {
    match whole(rest)? {
        0 => Err("1 is the first".to_owned()),
        number => Ok(number),
    }
}

fn whole(rest: &str) -> Result<u64, String> {
    rest.parse()
        .map_err(|_| format!("{rest:?} is no whole number"))
}

/// What has passed so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Connections accepted since the start.
    pub connections: u64,
    /// Connections that are open now.
    pub open: usize,
    /// Requests that went on to the server, by the command's name in capitals.
    pub requests: BTreeMap<String, u64>,
    /// Replies swallowed: those requests were executed.
    pub lost: u64,
    /// Replies that wait for `go`.
    pub held: usize,
    /// Traps that no request has sprung: a test that expects its fault checks for 0.
    pub armed: usize,
    /// Connections ended because what came over them was no RESP, or nobody had asked for it.
    pub malformed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_listed_command_is_understood() {
        for line in COMMANDS.lines() {
            let usage = line.split("  ").next().unwrap();
            let line = usage
                .replace("<n>", "3")
                .replace("<milliseconds>", "3")
                .replace("<text>", "a key");
            assert!(line.parse::<Command>().is_ok(), "{line}");
        }
    }

    #[test]
    fn a_text_is_the_rest_of_the_line() {
        assert_eq!(
            "lose-matching a  key".parse(),
            Ok(Command::LoseMatching("a  key".to_owned()))
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for line in [
            "",
            "Lose 1",
            "lose",
            "lose 0",
            "lose -1",
            "lose one",
            "hold 1",
            "lose-matching",
            "delay",
        ] {
            assert!(line.parse::<Command>().is_err(), "{line:?}");
        }
    }
}
