//! Looking through the keys of a server, a page at a time.

use std::borrow::Cow;
use std::time::Duration;

use crate::claim::{self, Listed};
use crate::error::{Code, Error};
use crate::key::{Key, Part, SideKey, side_key};
use crate::round::{Effect, Progress, Round, Work};
use crate::script::{number, text};
use crate::seat::Seat;
use crate::settings::Settings;
use crate::step::{Argument, Command, Event, Operation, Reply, Step};
use crate::time::Instant;
use crate::token::Seed;
use crate::twin::Pttl;

/// How many keys a server looks at for a page, about.
const PAGE: u32 = 500;

/// Where a scan stands: opaque, and good for going on later.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cursor(Vec<u8>);

/// One page of a scan: the keys that match a pattern, with type, remaining time and text.
///
/// A key may be found twice, and one that comes or goes during a scan may be missed: that is what SCAN gives. Fails with
/// `forbidden` if the account may not SCAN. Repeated by itself after a lost reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scan {
    seed: Seed,
    deadline: Instant,
    passes_over_forbidden: bool,
    state: State,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    Listing(Round),
    Reading {
        round: Round,
        keys: Vec<Vec<u8>>,
        next: Option<Cursor>,
    },
}

/// What a page holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Page {
    /// The keys that were found.
    pub found: Vec<Found>,
    /// The keys that the account may not read, with the server's refusal; none unless they are
    /// [passed over](Scan::passing_over_forbidden).
    pub forbidden: Vec<(Vec<u8>, Error)>,
    /// Where to go on; nothing at the end.
    pub next: Option<Cursor>,
}

/// A key that was found.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Found {
    /// The key.
    pub key: Vec<u8>,
    /// Its text; nothing for another type.
    pub text: Option<Vec<u8>>,
    /// Its remaining milliseconds; nothing for a key without a TTL.
    pub ttl: Option<u64>,
}

impl Cursor {
    /// The cursor that [`Cursor::as_bytes`] gave; `invalid_argument` for anything else.
    pub fn new(bytes: &[u8]) -> Result<Self, Error> {
        if !bytes.is_empty() && bytes.len() <= 20 && bytes.iter().all(u8::is_ascii_digit) {
            return Ok(Self(bytes.to_vec()));
        }
        Err(Error::new(
            Code::InvalidArgument,
            "a cursor is what an earlier page of a scan has given",
        ))
    }

    /// The cursor as text, to be kept.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Found {
    /// The whole number that it holds, if it may be a counter: a key of the user's with such a text.
    pub fn counter(&self) -> Option<i64> {
        if self.side().is_some() {
            return None;
        }
        core::str::from_utf8(self.text.as_deref()?)
            .ok()
            .and_then(crate::counter::parse)
    }

    /// The claim that it is, if it is one.
    pub fn claim(&self) -> Option<Listed<'_>> {
        claim::listed(self.side()?, self.text.as_deref()?)
    }

    /// Whether it is a counter that holds something and ends within this time, or has lost its TTL.
    pub fn is_expiring(&self, within: Duration) -> bool {
        let ends = self
            .ttl
            .is_none_or(|left| Duration::from_millis(left) <= within);
        ends && self.counter().is_some_and(|amount| amount != 0)
    }

    /// What it is kept beside, if it is a side key.
    pub fn side(&self) -> Option<SideKey<'_>> {
        side_key(&self.key)
    }
}

/// The pattern of the claims of a counter.
pub fn claims_of(counter: &Key) -> Vec<u8> {
    let mut pattern = literal(&counter.side(Part::Claims));
    pattern.push(b'*');
    pattern
}

/// The pattern of the claims, of any counter, whose ids begin with this text. Other keys may match it too.
pub fn claims_beginning_with(id: &[u8]) -> Vec<u8> {
    let mut pattern = b"*:claim:".to_vec();
    pattern.extend(literal(id));
    pattern.push(b'*');
    pattern
}

/// The pattern of all side keys of a key.
pub fn side_keys_of(owner: &Key) -> Vec<u8> {
    let claims = owner.side(Part::Claims);
    let marker = claims.strip_suffix(b"claim:").unwrap_or(&claims);
    let mut pattern = literal(marker);
    pattern.push(b'*');
    pattern
}

/// The pattern that this text alone matches.
fn literal(text: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(text.len() + 1);
    for byte in text {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\') {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern
}

impl Scan {
    /// Looks for keys that match `pattern` (`*`, `?`, `[a-z]`), from `cursor` on or from the beginning.
    pub fn start(
        pattern: &[u8],
        cursor: Option<&Cursor>,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Self, Step<Result<Page, Error>>) {
        let from = cursor.map_or(Cow::Borrowed(b"0".as_slice()), |cursor| text(&cursor.0));
        let command = vec![
            word("SCAN"),
            from,
            word("MATCH"),
            text(pattern),
            word("COUNT"),
            number(PAGE),
        ];
        let deadline = now.plus(settings.timeout.as_millis());
        let work = Work::Reads(vec![command]);
        let (round, call) = Round::start(
            work,
            Effect::None,
            Seat::only(settings.scripts),
            seed,
            deadline,
            now,
        );
        let scan = Self {
            seed,
            deadline,
            passes_over_forbidden: false,
            state: State::Listing(round),
        };
        (scan, Step::send(call, deadline))
    }

    /// The same scan, which tells the keys that the account may not read beside the others instead of failing at one.
    #[must_use]
    pub fn passing_over_forbidden(self) -> Self {
        Self {
            passes_over_forbidden: true,
            ..self
        }
    }

    fn listed(&mut self, now: Instant, reply: Reply, seat: Seat) -> Step<Result<Page, Error>> {
        let Some((cursor, keys)) = listing(reply) else {
            return Step::done(Err(Error::new(
                Code::Unsupported,
                "the server's answer to SCAN is no list of keys",
            )));
        };
        let next = (cursor != b"0").then_some(Cursor(cursor));
        if keys.is_empty() {
            return Step::done(Ok(Page {
                found: Vec::new(),
                forbidden: Vec::new(),
                next,
            }));
        }
        let work = Work::Reads(keys.iter().flat_map(|key| questions(key)).collect());
        let (round, call) = Round::start(work, Effect::None, seat, self.seed, self.deadline, now);
        self.state = State::Reading { round, keys, next };
        Step::send(call, self.deadline)
    }
}

impl Operation for Scan {
    type Output = Result<Page, Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        let (State::Listing(round) | State::Reading { round, .. }) = &mut self.state;
        let reply = match round.handle(now, event) {
            Progress::Wait(until) => return Step::wait(until),
            Progress::Send(call, until) => return Step::send(call, until),
            Progress::Failed(error) => return Step::done(Err(error)),
            Progress::Answered(reply) => reply,
        };
        let seat = round.seat();
        match &mut self.state {
            State::Listing(_) => self.listed(now, reply, seat),
            State::Reading { keys, next, .. } => {
                let (keys, next) = (core::mem::take(keys), next.take());
                Step::done(read(keys, reply, next, self.passes_over_forbidden))
            }
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        false
    }
}

/// What is asked about a key. TYPE comes first: an error there is one of the server, not of the key.
fn questions(key: &[u8]) -> [Command; 3] {
    [
        vec![word("TYPE"), text(key)],
        vec![word("PTTL"), text(key)],
        vec![word("GET"), text(key)],
    ]
}

fn listing(reply: Reply) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let Reply::Array(mut replies) = reply else {
        return None;
    };
    let Reply::Array(parts) = replies.pop()? else {
        return None;
    };
    let [Reply::Text(cursor), Reply::Array(keys)] = <[Reply; 2]>::try_from(parts).ok()? else {
        return None;
    };
    let keys = keys.into_iter().map(|key| match key {
        Reply::Text(key) => Some(key),
        _ => None,
    });
    Some((cursor, keys.collect::<Option<_>>()?))
}

fn read(
    keys: Vec<Vec<u8>>,
    reply: Reply,
    next: Option<Cursor>,
    passes_over_forbidden: bool,
) -> Result<Page, Error> {
    let Reply::Array(replies) = reply else {
        return Err(Error::unexpected(&reply));
    };
    let (mut found, mut forbidden) = (Vec::with_capacity(keys.len()), Vec::new());
    for (key, answers) in keys.into_iter().zip(replies.chunks_exact(3)) {
        if let Some(error) = refusal(answers) {
            let error = error.about(&key);
            if !passes_over_forbidden {
                return Err(error);
            }
            forbidden.push((key, error));
            continue;
        }
        let ttl = match Pttl::understand(&answers[1])? {
            // It has gone since it was listed.
            Pttl::Absent => continue,
            Pttl::Forever => None,
            Pttl::Millis(millis) => Some(millis),
        };
        let text = match &answers[2] {
            Reply::Text(text) => Some(text.clone()),
            Reply::Error(text) if text.starts_with("WRONGTYPE") => None,
            Reply::Nil => continue,
            Reply::Error(text) => return Err(Error::from_reply(text).about(&key)),
            other => return Err(Error::unexpected(other)),
        };
        found.push(Found { key, text, ttl });
    }
    Ok(Page {
        found,
        forbidden,
        next,
    })
}

/// The error if one of the answers about a key is that the account may not ask.
fn refusal(answers: &[Reply]) -> Option<Error> {
    answers.iter().find_map(|answer| match answer {
        Reply::Error(text) => {
            Some(Error::from_reply(text)).filter(|error| error.code() == Code::Forbidden)
        }
        _ => None,
    })
}

fn word(word: &'static str) -> Argument {
    Cow::Borrowed(word.as_bytes())
}
