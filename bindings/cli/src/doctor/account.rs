//! What the account may do: it is tried, on keys of its own.

use std::time::{Duration, SystemTime};

use tallylock::blocking::{Client, PlainConnection};
use tallylock::{Code, Error, Reply};
use tallylock_core::key::{Key, Part};
use tallylock_core::script::Script;

use super::finding::{Check, Finding};
use crate::output::text;

const ACCOUNT: Check = Check {
    name: "account",
    why: "an account of its own, with no more rights than docs/acl.md gives, can do no harm to what others keep there",
};
const SCRIPTS: Check = Check {
    name: "scripts",
    why: "each verb is one script; where EVAL is forbidden it is a transaction, which costs more round trips and may have to be repeated",
};
const COUNTERS: Check = Check {
    name: "counters",
    why: "a command that is refused inside a script leaves what the script did before it",
};
const LOCKS: Check = Check {
    name: "locks",
    why: "a lock that can be taken and not released is held until its time is over",
};
const CHANNELS: Check = Check {
    name: "channels",
    why: "a release is told on a channel; where that is refused, whoever waits for the lock finds out later by itself",
};

const RIGHTS: &str = "give the account the rights of docs/acl.md";

/// How long the keys live if they cannot be deleted.
const TTL: Duration = Duration::from_secs(60);

/// Tries it all on a key that begins with `prefix`; fails only if the server cannot be talked to.
pub(super) fn findings(
    plain: &mut PlainConnection,
    client: &Client,
    prefix: &[u8],
) -> Result<Vec<Finding>, Error> {
    let key = Key::new([prefix, unique().as_bytes()].concat())?;
    let mut findings = vec![account(plain)?];
    if is_foreign(plain, &key)? {
        let found = format!(
            "cannot be tried: the account may not use keys that begin with {}",
            text(prefix)
        );
        findings.push(COUNTERS.unseen(found, "give --prefix with what its keys begin with"));
        return Ok(findings);
    }
    findings.push(scripts(plain, &key)?);
    findings.push(match counters(client, &key) {
        Ok(()) => COUNTERS.ok("adding, reading, draining and finishing work"),
        Err(error) => refused(COUNTERS, &error)?,
    });
    // A verb that failed has left it. Where DEL is refused too, it ends by itself.
    delete(plain, &[key.as_bytes()])?;
    // Of another name, so that nothing which was left is in its way.
    let lock = Key::new([key.as_bytes(), b":lock"].concat())?;
    findings.push(locks(plain, client, &lock)?);
    findings.push(channels(plain, &lock)?);
    Ok(findings)
}

fn account(plain: &mut PlainConnection) -> Result<Finding, Error> {
    Ok(match tried(plain.ask(&["ACL", "WHOAMI"]))? {
        Ok(Reply::Text(user)) => ACCOUNT.ok(format!("user {}", text(&user))),
        _ => ACCOUNT.refused("ACL WHOAMI"),
    })
}

/// Whether the account has no right to keys of this name.
fn is_foreign(plain: &mut PlainConnection, key: &Key) -> Result<bool, Error> {
    let refusal = tried(plain.ask(&[b"GET", key.as_bytes()]))?.err();
    // Servers up to 6 say "one of the keys", later ones "a key"; where it is the command, they name it.
    Ok(refusal
        .is_some_and(|error| error.detail().contains("access") && error.detail().contains("key")))
}

fn scripts(plain: &mut PlainConnection, key: &Key) -> Result<Finding, Error> {
    let millis = TTL.as_millis().to_string();
    let call: [&[u8]; 7] = [
        b"EVAL",
        Script::CounterAdd.source().as_bytes(),
        b"1",
        key.as_bytes(),
        b"0",
        millis.as_bytes(),
        b"sliding",
    ];
    Ok(match tried(plain.ask(&call))? {
        Ok(_) => SCRIPTS.ok("EVAL is allowed"),
        Err(error)
            if error.code() == Code::Forbidden
                && error.detail().to_lowercase().contains("'eval") =>
        {
            SCRIPTS.warning(
                "EVAL is forbidden: verbs go by WATCH, MULTI and EXEC",
                RIGHTS,
            )
        }
        Err(error) if error.detail().contains("unknown command") => SCRIPTS.warning(
            "EVAL is renamed or removed: verbs go by WATCH, MULTI and EXEC",
            "let the server keep EVAL and EVALSHA",
        ),
        Err(error) => refused(SCRIPTS, &error)?,
    })
}

/// Every command that a counter's verbs need; the last of them deletes it.
fn counters(client: &Client, key: &Key) -> Result<(), Error> {
    let counter = client.counter(key.as_bytes(), TTL)?;
    counter.add(1)?;
    counter.add(1)?;
    counter.read()?;
    counter.drain()?;
    counter.finish()?;
    Ok(())
}

fn locks(plain: &mut PlainConnection, client: &Client, key: &Key) -> Result<Finding, Error> {
    let taken = client
        .lock(key.as_bytes(), TTL)
        .and_then(|lock| lock.acquire(Duration::ZERO)?.release());
    let fence = key.side(Part::Fence);
    Ok(match (taken, delete(plain, &[key.as_bytes(), &fence])?) {
        (Ok(()), true) => LOCKS.ok("acquiring and releasing work"),
        (Ok(()), false) => LOCKS.warning(
            format!(
                "they work, but DEL is refused: {} stays for 24 hours",
                text(&fence)
            ),
            RIGHTS,
        ),
        (Err(error), _) => refused(LOCKS, &error)?,
    })
}

/// Deletes keys; gives whether the account may.
fn delete(plain: &mut PlainConnection, keys: &[&[u8]]) -> Result<bool, Error> {
    let words = [&[b"DEL".as_slice()], keys].concat();
    Ok(tried(plain.ask(&words))?.is_ok())
}

fn channels(plain: &mut PlainConnection, key: &Key) -> Result<Finding, Error> {
    let channel = key.side(Part::Released);
    // The end of a subscription is tried before its beginning: nothing else can be asked where it cannot be ended.
    let commands: [&[&[u8]]; 4] = [
        &[b"PUBLISH", &channel, b"released"],
        &[b"UNSUBSCRIBE", &channel],
        &[b"SUBSCRIBE", &channel],
        &[b"UNSUBSCRIBE", &channel],
    ];
    for command in commands {
        if tried(plain.ask(command))?.is_err() {
            let found = format!("{} is refused", text(command[0]));
            return Ok(CHANNELS.warning(found, RIGHTS));
        }
    }
    Ok(CHANNELS.ok("a release can be told and heard"))
}

/// A verb that failed is a finding, unless nobody can be asked any more.
fn refused(check: Check, error: &Error) -> Result<Finding, Error> {
    let fix = match error.code() {
        Code::Unavailable | Code::Timeout | Code::Closed => return Err(error.clone()),
        Code::Forbidden | Code::OutcomeUnknown => RIGHTS,
        Code::ReadOnly => "connect to the primary",
        Code::OutOfMemory => "free memory or raise maxmemory",
        _ => "see docs/guarantees.md for what is supported",
    };
    Ok(check.problem(
        format!("{}: {}", error.code().as_str(), error.detail()),
        fix,
    ))
}

/// Sets a refusal by the server apart from a connection that is lost.
fn tried(reply: Result<Reply, Error>) -> Result<Result<Reply, Error>, Error> {
    match reply {
        Err(error) if matches!(error.code(), Code::OutcomeUnknown | Code::Closed) => Err(error),
        other => Ok(other),
    }
}

/// The end of a name that nobody else uses at this moment.
fn unique() -> String {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    format!("{}-{}", std::process::id(), since.as_nanos())
}
