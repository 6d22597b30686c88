//! What can be asked for, and what is said when it cannot be understood.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::duration;
use crate::server::{Patience, Server, Url};
use crate::status::Failure;

const EXAMPLES: &str = "\
Examples:
  tallylock audit redis://127.0.0.1:6379 --match 'session:*'
  tallylock audit redis://127.0.0.1:6379 --match 'session:*' --repair --ttl 15m
  tallylock doctor redis://billing:secret@db-1:6379 redis://billing:secret@db-2:6379
  export TALLYLOCK_REDIS_URL=redis://127.0.0.1:6379
  tallylock lock list
  tallylock counter show session:42:billableSecondsPending
  tallylock watch --match 'session:*' --for 10s

Whoever can list the processes of this machine sees the arguments: keep a URL with a password in TALLYLOCK_REDIS_URL.
Exit codes: 0 fine, 1 nothing there or warnings, 2 problems, from 64 on as in sysexits.h (docs/cli.md).";

/// Looks after billing counters and locks on Redis or Valkey.
#[derive(Parser)]
#[command(name = "tallylock", version, after_help = EXAMPLES, disable_help_subcommand = true, max_term_width = 120)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Audit(AuditArguments),
    Doctor(DoctorArguments),
    /// Shows who holds which lock, and takes one away
    #[command(subcommand)]
    Lock(LockCommand),
    /// Shows, drains and lists the claims of a counter
    #[command(subcommand)]
    Counter(CounterCommand),
    Watch(WatchArguments),
}

/// Counts keys by what they are, finds those without a TTL, and gives them one if asked
///
/// Goes through all keys of the server, a page at a time, with little memory. A key may be counted twice while the server
/// resizes its table of keys, and one that comes or goes meanwhile may be missed: that is what SCAN gives.
#[derive(Args)]
pub(crate) struct AuditArguments {
    #[command(flatten)]
    pub(crate) server: Server,

    /// Which keys: * is any text, ? any character, [ab] one of these
    #[arg(long = "match", value_name = "PATTERN")]
    pub(crate) pattern: Option<OsString>,

    /// Open claims with less than this left are counted apart
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = duration::parse)]
    pub(crate) near: Duration,

    /// Give the keys without a TTL one; asks first. Keys that have a TTL are never touched
    #[arg(long, requires = "ttl", requires = "pattern")]
    pub(crate) repair: bool,

    /// The TTL to give
    #[arg(long, value_name = "DURATION", requires = "repair", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,

    /// How many keys a second are given a TTL at most
    #[arg(long, value_name = "NUMBER", default_value = "1000", requires = "repair", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: u32,

    /// Do not ask
    #[arg(long, requires = "repair")]
    pub(crate) yes: bool,

    /// Print JSON (its fields are in docs/cli.md)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Says whether servers are fit for counters and locks: what is wrong, why it matters, how to mend it
///
/// Tries what the account may do on keys of its own, which it deletes. Ends with 2 if there is a problem.
#[derive(Args)]
pub(crate) struct DoctorArguments {
    #[arg(
        value_name = "URL",
        help = "Where the servers are; else what TALLYLOCK_REDIS_URL holds"
    )]
    pub(crate) urls: Vec<Url>,

    #[command(flatten)]
    pub(crate) patience: Patience,

    /// What the keys begin with on which the account is tried
    #[arg(long, value_name = "PREFIX", default_value = "tallylock:doctor:")]
    pub(crate) prefix: OsString,

    /// End with 1 if there are warnings
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print JSON (its fields are in docs/cli.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum LockCommand {
    /// Lists the locks that are held: holder, remaining time, fence
    ///
    /// A lock is a key with a fence beside it, or one that holds a token of tallylock.
    List {
        #[command(flatten)]
        server: Server,

        /// Which keys: * is any text, ? any character, [ab] one of these
        #[arg(long = "match", value_name = "PATTERN", default_value = "*")]
        pattern: OsString,

        /// Print JSON (its fields are in docs/cli.md)
        #[arg(long)]
        json: bool,
    },
    /// Shows one lock; ends with 1 if nobody holds it
    #[command(allow_missing_positional = true)]
    Show {
        #[command(flatten)]
        server: Server,

        /// The lock
        #[arg(required = true)]
        key: OsString,

        /// Show the token too, as `lock steal` takes it: whoever sees it can release the lock
        #[arg(long)]
        token: bool,

        /// Print JSON (its fields are in docs/cli.md)
        #[arg(long)]
        json: bool,
    },
    /// Takes a lock away from its holder; asks first, and ends with 1 if that token holds it no more
    ///
    /// The holder is not asked, and learns it when he next extends or releases. The fence is counted up, so that what he
    /// still writes with his own can be refused.
    #[command(allow_missing_positional = true)]
    Steal {
        #[command(flatten)]
        server: Server,

        /// The lock
        #[arg(required = true)]
        key: OsString,

        /// The token that must hold it, as `lock show --token` prints it
        #[arg(long, value_name = "TOKEN")]
        expect: OsString,

        /// Why, for those who ask later: it is printed with who lost the lock
        #[arg(long, value_name = "TEXT")]
        reason: String,

        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Subcommand)]
pub(crate) enum CounterCommand {
    /// Shows a counter: total, remaining time, and what is kept beside it; ends with 1 if there is none
    ///
    /// Goes through all keys of the server to find what is kept beside it.
    #[command(allow_missing_positional = true)]
    Show {
        #[command(flatten)]
        server: Server,

        /// The counter
        #[arg(required = true)]
        key: OsString,

        /// Print JSON (its fields are in docs/cli.md)
        #[arg(long)]
        json: bool,
    },
    /// Takes what is in a counter and prints it; asks first
    ///
    /// The amount is then in the output and nowhere else. The counter keeps its remaining time.
    #[command(allow_missing_positional = true)]
    Drain {
        #[command(flatten)]
        server: Server,

        /// The counter
        #[arg(required = true)]
        key: OsString,

        /// What a counter that has lost its TTL is given
        #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = duration::parse)]
        ttl: Duration,

        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Lists the open claims of a counter
    ///
    /// Goes through all keys of the server.
    #[command(allow_missing_positional = true)]
    Claims {
        #[command(flatten)]
        server: Server,

        /// The counter
        #[arg(required = true)]
        key: OsString,

        /// Print JSON (its fields are in docs/cli.md)
        #[arg(long)]
        json: bool,
    },
}

/// Shows adds, drains, claims and locks as they happen, until Ctrl-C
///
/// It asks the server for MONITOR. That makes the server send here all that all of its clients ask for, which costs it much
/// (a busy one can lose half of its speed), and the account needs the right +monitor. What clients do without scripts
/// is not seen. Times are UTC.
#[derive(Args)]
pub(crate) struct WatchArguments {
    #[command(flatten)]
    pub(crate) server: Server,

    /// Which keys: * is any text, ? any character, [ab] one of these
    #[arg(long = "match", value_name = "PATTERN", default_value = "*")]
    pub(crate) pattern: OsString,

    /// End after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) time: Option<Duration>,
}

/// Arguments that were understood.
pub(crate) enum Parsed {
    Help(String),
    Command(Command),
}

/// Reads the arguments, the first of which is the name of the command.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Parsed, Failure> {
    let parsed = Arguments::command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    match parsed {
        Ok(parsed) => Ok(Parsed::Command(parsed.command)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                Ok(Parsed::Help(error.render().to_string()))
            }
            _ => Err(refusal(&error, arguments)),
        },
    }
}

/// What is wrong, in our own words: clap's repeat what was given, and a password may stand anywhere in that.
fn refusal(error: &clap::Error, arguments: &[OsString]) -> Failure {
    // The names of arguments are ours wherever it is the value that is wrong.
    let name = || told(error, ContextKind::InvalidArg).unwrap_or_else(|| "an argument".to_owned());
    let why = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => unknown(error, arguments),
        ErrorKind::MissingRequiredArgument => format!("missing: {}", name()),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing".to_owned()
        }
        ErrorKind::ValueValidation => match std::error::Error::source(error) {
            Some(source) if !name().contains("NUMBER") => format!("{}: {source}", name()),
            _ => format!("{} is a whole number from 1 on", name()),
        },
        ErrorKind::InvalidValue | ErrorKind::NoEquals => format!("{} needs a value", name()),
        ErrorKind::ArgumentConflict => {
            format!("{} is given twice, or beside one that excludes it", name())
        }
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8".to_owned(),
        _ => "the arguments are not understood".to_owned(),
    };
    Failure::usage(format!("{why}; see '{} --help'", command_path(arguments)))
}

fn unknown(error: &clap::Error, arguments: &[OsString]) -> String {
    let place = told(error, ContextKind::InvalidArg)
        .or_else(|| told(error, ContextKind::InvalidSubcommand))
        .and_then(|text| {
            let is_it = |argument: &OsString| {
                argument.to_string_lossy().split('=').next() == text.split('=').next()
            };
            arguments.iter().position(is_it)
        });
    let which = place.map_or_else(
        || "an argument".to_owned(),
        |place| format!("argument {place}"),
    );
    let suggested = told(error, ContextKind::SuggestedArg)
        .or_else(|| told(error, ContextKind::SuggestedSubcommand));
    let hint = suggested.map_or_else(String::new, |suggested| {
        format!(" (did you mean {suggested}?)")
    });
    format!("{which} is not known here{hint}")
}

fn told(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => Some(texts.join(", ")),
        _ => None,
    }
}

/// The words of the command that was meant, as far as they are known.
fn command_path(arguments: &[OsString]) -> String {
    let mut command = &Arguments::command();
    let mut path = command.get_name().to_owned();
    for word in arguments
        .iter()
        .skip(1)
        .map(OsString::as_os_str)
        .map(OsStr::to_string_lossy)
    {
        let Some(next) = command.find_subcommand(word.as_ref()) else {
            break;
        };
        path.push(' ');
        path.push_str(next.get_name());
        command = next;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
