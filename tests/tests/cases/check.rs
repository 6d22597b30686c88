//! What the shape of a file does not show: names that are used must be declared, and a server has no virtual clock.

use std::collections::BTreeSet;

use crate::expected::Fence;
use crate::format::{
    Adopt, Adoption, Arguments, Ask, Call, Case, Fault, File, Handle, Left, Only, Step,
};

/// The most that a case may really wait on a server, in milliseconds.
const LONGEST_WAIT: u64 = 300;

const CODES: [&str; 18] = [
    "busy",
    "lost",
    "already_held",
    "fenced_off",
    "conflict",
    "invalid_argument",
    "wrong_type",
    "not_an_integer",
    "overflow",
    "timeout",
    "unavailable",
    "outcome_unknown",
    "read_only",
    "forbidden",
    "out_of_memory",
    "unsupported",
    "cancelled",
    "closed",
];
const REASONS: [&str; 3] = ["expired", "taken_over", "forked"];

/// Reads a file of cases, or says what is wrong with it.
pub(crate) fn read(text: &str) -> Result<File, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut names = BTreeSet::new();
    for case in &file.cases {
        if !names.insert(&case.name) {
            return Err(format!("two cases are named {:?}", case.name));
        }
        check(case).map_err(|why| format!("{:?}: {why}", case.name))?;
    }
    Ok(file)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Counter,
    Value,
    Guarded,
    Lock,
    Lease,
}

/// What the steps so far have declared and used.
struct Seen<'a> {
    handles: &'a [Handle],
    leases: Vec<String>,
    /// The tokens that were looked at, and those that were given away.
    tokens: Vec<String>,
    given: Vec<String>,
    waited: u64,
    only_memory: bool,
}

fn check(case: &Case) -> Result<(), String> {
    if case.why.is_empty() {
        return Err("it says not why".to_owned());
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = case
        .handles
        .iter()
        .find(|handle| !names.insert(handle.name()))
    {
        return Err(format!("two handles are named {:?}", twice.name()));
    }
    let mut seen = Seen {
        handles: &case.handles,
        leases: Vec::new(),
        tokens: Vec::new(),
        given: Vec::new(),
        waited: 0,
        only_memory: case.only == Some(Only::Memory),
    };
    steps(&case.steps, &mut seen)?;
    case.left.iter().try_for_each(left)
}

fn left(left: &Left) -> Result<(), String> {
    let said = [
        left.value.is_some(),
        left.pattern.is_some(),
        left.other.is_some(),
    ];
    if said.into_iter().filter(|said| *said).count() == 1 {
        return Ok(());
    }
    Err("what is left has either a value, a pattern or a type".to_owned())
}

fn steps(list: &[Step], seen: &mut Seen<'_>) -> Result<(), String> {
    for step in list {
        match step {
            Step::Add(call) => returning(call, Kind::Counter, seen)?,
            Step::Read(call) => returning(call, Kind::Counter, seen)?,
            Step::AddOnce(call) => returning(call, Kind::Counter, seen)?,
            Step::Drain(call) => returning(call, Kind::Counter, seen)?,
            Step::Finish(call) => returning(call, Kind::Counter, seen)?,
            Step::Claim(call) => returning(call, Kind::Counter, seen)?,
            Step::Commit(call) => silent(call, Kind::Counter, seen)?,
            Step::Abort(call) => returning(call, Kind::Counter, seen)?,
            Step::Claims(call) => returning(call, Kind::Counter, seen)?,
            Step::Update(call) => returning(call, Kind::Value, seen)?,
            Step::AddMany(ask) => {
                asked(ask)?;
                for entry in &ask.with.entries {
                    declared(&entry.on, Kind::Counter, seen)?;
                }
            }
            Step::Scan(ask) => asked(ask)?,
            Step::Expiring(ask) => asked(ask)?,
            Step::Get(call) => returning(call, Kind::Value, seen)?,
            Step::Replace(call) => returning(call, Kind::Value, seen)?,
            Step::Touch(call) => returning(call, Kind::Value, seen)?,
            Step::CompareAndSet(call) => returning(call, Kind::Value, seen)?,
            Step::Set(call) => silent(call, Kind::Guarded, seen)?,
            Step::Delete(call) => returning(call, Kind::Guarded, seen)?,
            Step::Inspect(look) => {
                declared(&look.on, Kind::Lock, seen)?;
                if look.expect.is_some() == look.error.is_some() {
                    return Err("of a look either a result or an error is expected".to_owned());
                }
                look.error.iter().try_for_each(fault)?;
                seen.tokens.extend(look.seen.clone());
            }
            Step::Steal(call) => {
                returning(call, Kind::Lock, seen)?;
                match (&call.with().token, &call.with().seen) {
                    (Some(_), None) => {}
                    (None, Some(name)) if seen.tokens.contains(name) => {}
                    _ => return Err("a steal has a token, or one that was seen".to_owned()),
                }
            }
            Step::Acquire(acquire) => {
                declared(&acquire.on, Kind::Lock, seen)?;
                named(
                    acquire.lease.as_ref(),
                    acquire.error.as_ref(),
                    &mut seen.leases,
                )?;
            }
            Step::Adopt(adopt) => adoption(adopt, seen)?,
            Step::Block(block) => {
                declared(&block.on, Kind::Lock, seen)?;
                block.error.iter().try_for_each(fault)?;
                seen.leases.extend(block.lease.clone());
                steps(&block.inside, seen)?;
                if block.lease.is_some() {
                    seen.leases.pop();
                }
            }
            Step::Extend(call) => silent(call, Kind::Lease, seen)?,
            Step::Release(call) => silent(call, Kind::Lease, seen)?,
            Step::Transfer(transfer) => {
                declared(&transfer.on, Kind::Lease, seen)?;
                named(
                    transfer.token.as_ref(),
                    transfer.error.as_ref(),
                    &mut seen.given,
                )?;
            }
            Step::Ensure(call) | Step::Verify(call) => silent(call, Kind::Lease, seen)?,
            Step::Fence(told) => {
                declared(&told.on, Kind::Lease, seen)?;
                if let Fence::Above(other) | Fence::Equals(other) = &told.expect {
                    declared(other, Kind::Lease, seen)?;
                }
            }
            Step::Remaining(told) => declared(&told.on, Kind::Lease, seen)?,
            Step::Advance { with } => {
                seen.waited += with.ms;
                if seen.waited > LONGEST_WAIT && !seen.only_memory {
                    return Err(format!(
                        "it waits for more than {LONGEST_WAIT} ms on a server"
                    ));
                }
            }
            Step::LoseNextReply {} if !seen.only_memory => {
                return Err("only memory:// can lose a reply".to_owned());
            }
            Step::LoseNextReply {} | Step::Plant { .. } | Step::Remove { .. } => {}
        }
    }
    Ok(())
}

fn adoption(adopt: &Adopt, seen: &mut Seen<'_>) -> Result<(), String> {
    declared(&adopt.on, Kind::Lock, seen)?;
    match &adopt.with {
        Adoption::Given(name) if !seen.given.contains(name) => {
            Err(format!("the token {name:?} was not given"))
        }
        _ => named(adopt.lease.as_ref(), adopt.error.as_ref(), &mut seen.leases),
    }
}

/// What gives something has a name for it, or an error.
fn named(
    name: Option<&String>,
    error: Option<&Fault>,
    names: &mut Vec<String>,
) -> Result<(), String> {
    match (name, error) {
        (Some(name), None) => {
            names.push(name.clone());
            Ok(())
        }
        (None, Some(error)) => fault(error),
        _ => Err("what is given has either a name or an error".to_owned()),
    }
}

fn returning<W: Arguments, E>(
    call: &Call<W, E>,
    kind: Kind,
    seen: &Seen<'_>,
) -> Result<(), String> {
    if call.expect.is_some() == call.error.is_some() {
        return Err(format!(
            "on {:?} either a result or an error is expected",
            call.on
        ));
    }
    verb(call, kind, seen)
}

fn asked<W, E>(ask: &Ask<W, E>) -> Result<(), String> {
    if ask.expect.is_some() == ask.error.is_some() {
        return Err("of the client either a result or an error is expected".to_owned());
    }
    ask.error.iter().try_for_each(fault)
}

fn silent<W: Arguments, E>(call: &Call<W, E>, kind: Kind, seen: &Seen<'_>) -> Result<(), String> {
    if call.expect.is_some() {
        return Err(format!("on {:?} nothing is returned", call.on));
    }
    verb(call, kind, seen)
}

fn verb<W: Arguments, E>(call: &Call<W, E>, kind: Kind, seen: &Seen<'_>) -> Result<(), String> {
    if call.lacks_arguments() {
        return Err(format!("on {:?} arguments are missing", call.on));
    }
    declared(&call.on, kind, seen)?;
    call.error.iter().try_for_each(fault)
}

fn declared(name: &str, kind: Kind, seen: &Seen<'_>) -> Result<(), String> {
    let handle = seen.handles.iter().find(|handle| handle.name() == name);
    let found = match handle {
        Some(Handle::Counter { .. }) => Some(Kind::Counter),
        Some(Handle::Value { .. }) => Some(Kind::Value),
        Some(Handle::Guarded { .. }) => Some(Kind::Guarded),
        Some(Handle::Lock { .. }) => Some(Kind::Lock),
        None => seen
            .leases
            .iter()
            .any(|lease| lease == name)
            .then_some(Kind::Lease),
    };
    if found == Some(kind) {
        return Ok(());
    }
    Err(format!("{name:?} is no {kind:?} here"))
}

fn fault(fault: &Fault) -> Result<(), String> {
    if !CODES.contains(&fault.code.as_str()) {
        return Err(format!("there is no code {:?}", fault.code));
    }
    match &fault.reason {
        None if fault.code == "lost" => Err("lost has a reason".to_owned()),
        Some(_) if fault.code != "lost" => Err("only lost has a reason".to_owned()),
        Some(reason) if !REASONS.contains(&reason.as_str()) => {
            Err(format!("there is no reason {reason:?}"))
        }
        _ => Ok(()),
    }
}
