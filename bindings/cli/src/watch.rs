//! `tallylock watch`: what happens on a server, as it happens.

mod call;
mod line;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use tallylock::Reply;
use tallylock_core::memory::matches;

use crate::arguments::WatchArguments;
use crate::output::text;
use crate::status::{Failure, Status};
use call::Call;
use line::Line;

/// After this time without a line it is looked at whether the time is over.
const LONGEST_SILENCE: Duration = Duration::from_secs(3600);

pub(crate) fn run(arguments: &WatchArguments, output: &mut dyn Write) -> Result<Status, Failure> {
    let mut plain = arguments.server.plain()?;
    plain.ask(&["MONITOR"])?;
    let ends = arguments.time.map(|time| Instant::now() + time);
    // A word of advice: what is not read changes nothing.
    let _ = writeln!(
        io::stderr(),
        "watching by MONITOR, which costs the server much: do not leave it on; times are UTC"
    );
    let mut watch = Watch {
        pattern: arguments.pattern.as_encoded_bytes(),
        asked: None,
    };
    loop {
        let patience = ends.map_or(LONGEST_SILENCE, |ends| {
            ends.saturating_duration_since(Instant::now())
        });
        if patience.is_zero() {
            return Ok(Status::Fine);
        }
        let Some(Reply::Text(heard)) = plain.listen(patience)? else {
            continue;
        };
        if let Some(seen) = watch.hear(&heard) {
            writeln!(output, "{seen}")?;
        }
    }
}

struct Watch<'a> {
    pattern: &'a [u8],
    /// A call of a script that has not run yet.
    asked: Option<String>,
}

impl Watch<'_> {
    /// What to show after this line.
    ///
    /// A server tells of the script's call first and then of what the script does. Where something else follows, the script
    /// did not run: the server knew no such script yet, and the client sends it again as a whole.
    fn hear(&mut self, heard: &[u8]) -> Option<String> {
        let asked = self.asked.take();
        let line = Line::read(heard)?;
        if line.is_from_a_script {
            return asked;
        }
        let call = Call::read(&line.words).filter(|call| matches(self.pattern, &call.key))?;
        let database = match line.database {
            b"0" => String::new(),
            other => format!(" in database {}", text(other)),
        };
        let (time, verb, key) = (line.clock(), call.verb, text(&call.key));
        self.asked = Some(format!("{time} {verb} {key}{}{database}", call.detail));
        None
    }
}

#[cfg(test)]
mod tests {
    use tallylock_core::script::Script;

    use super::*;

    #[test]
    fn a_call_is_shown_once_it_has_run() {
        let mut watch = Watch {
            pattern: b"session:*",
            asked: None,
        };
        let line = |name: &str, script: &str, key: &str| {
            format!(
                r#"1700000001.000002 [0 127.0.0.1:5000] "{name}" "{script}" "1" "{key}" "30" "60000" "sliding""#
            )
        };
        let runs = br#"1700000001.000002 [0 lua] "SET" "x""#;
        let sha = Script::CounterAdd.sha();
        let source = Script::CounterAdd.source().replace('\n', r"\n");
        assert_eq!(
            watch.hear(line("EVALSHA", sha, "session:1").as_bytes()),
            None
        );
        assert_eq!(
            watch.hear(line("EVAL", &source, "session:1").as_bytes()),
            None,
            "the first did not run"
        );
        assert_eq!(
            watch.hear(runs),
            Some("22:13:21 add session:1 +30".to_owned())
        );
        assert_eq!(watch.hear(runs), None, "once");
        assert_eq!(watch.hear(line("evalsha", sha, "other:1").as_bytes()), None);
        assert_eq!(watch.hear(runs), None, "it does not match");
        let other_database = line("EVALSHA", sha, "session:2").replace("[0 ", "[3 ");
        assert_eq!(watch.hear(other_database.as_bytes()), None);
        assert_eq!(
            watch.hear(runs),
            Some("22:13:21 add session:2 +30 in database 3".to_owned())
        );
    }
}
