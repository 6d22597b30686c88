//! What happened in a world, a line an event.

use tallylock_core::script::Script;
use tallylock_core::step::{Call, Outcome, Reply, Undelivered};

/// How to read the lines.
pub(crate) const LEGEND: &str = "\
legend: each line is the time in milliseconds, who, and what
  c1 -> n0     client 1 has sent a request to node 0 (d: the server that holders write to)
  c1 => n0     it arrives there and is executed, with this reply
  c1 <- n0     the client hears the reply, or what the network says instead
  c1 **        what the client itself does or is told
  n0 **        what befalls a node";

/// The lines of one world.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) lines: Vec<String>,
}

impl Trace {
    pub(crate) fn sent(&mut self, now: u64, client: usize, node: &str, call: &Call) {
        self.line(now, &format!("c{client} -> {node}"), &named(call));
    }

    pub(crate) fn executed(
        &mut self,
        now: u64,
        client: usize,
        node: &str,
        call: &Call,
        outcome: &Outcome,
    ) {
        let what = format!("{}: {}", named(call), said(outcome));
        self.line(now, &format!("c{client} => {node}"), &what);
    }

    pub(crate) fn heard(&mut self, now: u64, client: usize, node: &str, outcome: &Outcome) {
        self.line(now, &format!("c{client} <- {node}"), &said(outcome));
    }

    pub(crate) fn does(&mut self, now: u64, client: usize, what: &str) {
        self.line(now, &format!("c{client} **"), what);
    }

    pub(crate) fn befalls(&mut self, now: u64, node: &str, what: &str) {
        self.line(now, &format!("{node} **"), what);
    }

    fn line(&mut self, now: u64, who: &str, what: &str) {
        self.lines.push(format!("{now:>8} {who:<9} {what}"));
    }
}

/// What a call asks for, in the name of its script, and its number.
fn named(call: &Call) -> String {
    let words = call.commands.first();
    let script = words.and_then(|words| {
        let named = |script: &Script| {
            script.sha().as_bytes() == words[1].as_ref()
                || script.source().as_bytes() == words[1].as_ref()
        };
        Script::ALL.into_iter().find(named)
    });
    let script = script.map_or_else(|| "?".to_owned(), |script| format!("{script:?}"));
    format!("{script} #{}", call.id.0)
}

fn said(outcome: &Outcome) -> String {
    match outcome {
        Ok(replies) => replies.iter().map(reply).collect::<Vec<_>>().join(" "),
        Err(Undelivered::NotSent(why)) => format!("not sent: {why}"),
        Err(Undelivered::MaybeSent(why)) => format!("perhaps sent: {why}"),
        Err(Undelivered::Refused(error)) => format!("refused: {error:?}"),
    }
}

fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Nil => "nil".into(),
        Reply::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Reply::Integer(number) => number.to_string(),
        Reply::Array(replies) => replies
            .iter()
            .map(self::reply)
            .collect::<Vec<_>>()
            .join(" "),
        Reply::Error(text) => text.split_whitespace().next().unwrap_or("error").to_owned(),
    }
}
