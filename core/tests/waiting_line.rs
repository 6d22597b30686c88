//! The line of a client's waiters, and what is subscribed for it.

use std::collections::BTreeSet;

use tallylock_core::error::{Code, Error};
use tallylock_core::step::{Event, Notice, Reply};
use tallylock_core::waiting::{Heard, Line, Subscriptions, Ticket};

fn line_of(count: usize) -> (Line, Vec<Ticket>) {
    let mut line = Line::default();
    let tickets = (0..count).map(|_| line.join()).collect();
    (line, tickets)
}

const HEARS: Option<Event> = Some(Event::Notified(Notice::Heard));
const HEARS_WITH_OTHERS: Option<Event> = Some(Event::Notified(Notice::Contended));
const IS_DEAF: Option<Event> = Some(Event::Notified(Notice::Deaf));
const IS_FIRST: Option<Event> = Some(Event::Notified(Notice::Forward));

#[test]
fn the_first_alone_is_notified_and_once() {
    let (mut line, tickets) = line_of(3);
    assert_eq!(line.due(), None, "the first asks by itself");
    line.released();
    assert_eq!(line.notice_for(tickets[1]), None);
    assert_eq!(line.due(), Some(tickets[0]));
    assert_eq!(line.notice_for(tickets[0]), IS_DEAF);
    assert_eq!(line.notice_for(tickets[0]), None);
}

#[test]
fn whoever_becomes_the_first_is_notified_in_the_order_in_which_they_came() {
    let (mut line, tickets) = line_of(4);
    line.leave(tickets[2], false);
    assert_eq!(line.due(), None, "one in the middle changes nothing");
    line.leave(tickets[0], false);
    assert_eq!(line.notice_for(tickets[1]), IS_DEAF);
    line.leave(tickets[1], false);
    line.leave(tickets[1], false);
    assert_eq!(line.due(), Some(tickets[3]));
    let late = line.join();
    line.leave(tickets[3], false);
    assert_eq!(line.notice_for(late), IS_DEAF);
}

#[test]
fn a_notice_that_its_waiter_has_not_taken_is_the_next_ones() {
    let (mut line, tickets) = line_of(2);
    line.released();
    line.leave(tickets[0], false);
    assert_eq!(line.notice_for(tickets[1]), IS_DEAF);
    line.released();
    line.leave(tickets[1], false);
    assert!(line.is_empty());
    let next = line.join();
    assert_eq!(line.notice_for(next), None, "that one asks anyway");
}

#[test]
fn after_a_grant_the_next_waits_for_the_release_if_that_is_told() {
    let (mut line, tickets) = line_of(4);
    line.leave(tickets[0], true);
    assert_eq!(line.notice_for(tickets[1]), IS_DEAF);
    line.listen(true);
    line.notice_for(tickets[1]);
    line.leave(tickets[1], true);
    assert_eq!(line.notice_for(tickets[2]), IS_FIRST);
    assert_eq!(line.notice_for(tickets[2]), None);
    line.released();
    line.leave(tickets[2], true);
    assert_eq!(
        line.notice_for(tickets[3]),
        HEARS,
        "that release may be newer than the grant"
    );
}

/// The first hears of a release; gives what it is told, and has it granted or denied.
fn race(line: &mut Line, is_won: bool) -> Option<Event> {
    let first = line.first().expect("somebody waits");
    line.released();
    let notice = line.notice_for(first);
    if is_won {
        line.join();
        line.leave(first, true);
        let next = line.first().expect("the one who has joined");
        assert_eq!(line.notice_for(next), IS_FIRST);
    } else {
        line.deny(&Error::new(Code::Busy, "another's"));
    }
    notice
}

#[test]
fn a_line_lets_others_go_first_once_they_were_faster_and_until_they_have_gone() {
    let (mut line, tickets) = line_of(2);
    line.listen(true);
    line.notice_for(tickets[0]);
    line.deny(&Error::new(
        Code::Busy,
        "not a race: it is held since before",
    ));
    assert_eq!(race(&mut line, true), HEARS);
    assert_eq!(race(&mut line, false), HEARS);
    for _ in 0..15 {
        assert_eq!(race(&mut line, true), HEARS_WITH_OTHERS);
    }
    assert_eq!(race(&mut line, false), HEARS_WITH_OTHERS);
    let notices: Vec<_> = (0..70).map(|_| race(&mut line, true)).collect();
    let yields = notices.iter().map(|notice| *notice == HEARS_WITH_OTHERS);
    let yields: Vec<usize> = yields
        .enumerate()
        .filter(|(_, yields)| *yields)
        .map(|(n, _)| n)
        .collect();
    // Sixteen times, and then where it finds out whether it is alone.
    assert_eq!(
        yields,
        [(0..=16).collect::<Vec<_>>(), vec![32, 64]].concat()
    );
}

#[test]
fn a_release_may_have_been_missed_when_hearing_begins_and_when_it_ends() {
    let (mut line, tickets) = line_of(1);
    line.listen(false);
    assert_eq!(line.due(), None, "nothing has changed");
    line.listen(true);
    assert_eq!(line.notice_for(tickets[0]), HEARS);
    line.listen(false);
    assert_eq!(line.notice_for(tickets[0]), IS_DEAF);
}

#[test]
fn one_that_never_asked_is_told_what_those_before_it_were_told() {
    let (mut line, _) = line_of(2);
    let own = Error::new(Code::Timeout, "own");
    assert_eq!(line.error_of_unasked(own.clone()), own);
    line.deny(&Error::new(Code::Cancelled, "that was one's own affair"));
    assert_eq!(line.error_of_unasked(own.clone()), own);
    for code in [Code::Busy, Code::Unavailable, Code::Timeout] {
        line.deny(&Error::new(code, "another's"));
        let told = line.error_of_unasked(own.clone());
        assert_eq!((told.code(), told.detail()), (code, "another's"));
    }
}

fn names(names: &[&str]) -> BTreeSet<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

/// The commands that have just these subscribed, as text.
fn want(subscriptions: &mut Subscriptions, wanted: &[&str]) -> Vec<String> {
    let commands = subscriptions.want(&names(wanted));
    let text = |command: Vec<std::borrow::Cow<'_, [u8]>>| {
        let words = command.iter().map(|word| String::from_utf8_lossy(word));
        words.collect::<Vec<_>>().join(" ")
    };
    commands.into_iter().map(text).collect()
}

fn array(kind: &str, channel: &str, last: Reply) -> Reply {
    let text = |text: &str| Reply::Text(text.into());
    Reply::Array(vec![text(kind), text(channel), last])
}

fn subscribed(channel: &str) -> Reply {
    array("subscribe", channel, Reply::Integer(1))
}

fn unsubscribed(channel: &str) -> Reply {
    array("unsubscribe", channel, Reply::Integer(0))
}

fn heard(subscriptions: &mut Subscriptions, reply: Reply) -> Heard {
    subscriptions.hear(reply).unwrap()
}

#[test]
fn what_is_wanted_is_subscribed_and_nothing_is_left_afterwards() {
    let mut all = Subscriptions::default();
    assert_eq!(want(&mut all, &["a", "b"]), ["SUBSCRIBE a", "SUBSCRIBE b"]);
    assert_eq!(want(&mut all, &["a", "b"]), [""; 0]);
    assert_eq!(
        heard(&mut all, subscribed("a")),
        Heard::Subscribed(b"a".to_vec())
    );
    assert!(all.has(b"a") && !all.has(b"b"));
    let message = array("message", "a", Reply::Text(b"released".to_vec()));
    assert_eq!(heard(&mut all, message), Heard::Message(b"a".to_vec()));
    assert_eq!(want(&mut all, &["b"]), ["UNSUBSCRIBE a"]);
    assert_eq!(
        heard(&mut all, subscribed("b")),
        Heard::Subscribed(b"b".to_vec())
    );
    assert_eq!(want(&mut all, &[]), ["UNSUBSCRIBE b"]);
    assert!(!all.is_idle(), "the server has not said so");
    assert_eq!(heard(&mut all, unsubscribed("a")), Heard::Nothing);
    assert_eq!(heard(&mut all, unsubscribed("b")), Heard::Nothing);
    assert!(all.is_idle());
}

#[test]
fn a_channel_that_is_wanted_again_in_between_ends_as_subscribed() {
    let mut all = Subscriptions::default();
    let commands = [
        want(&mut all, &["a"]),
        want(&mut all, &[]),
        want(&mut all, &["a"]),
    ];
    assert_eq!(
        commands.concat(),
        ["SUBSCRIBE a", "UNSUBSCRIBE a", "SUBSCRIBE a"]
    );
    heard(&mut all, subscribed("a"));
    heard(&mut all, unsubscribed("a"));
    let last = heard(&mut all, subscribed("a"));
    assert_eq!(
        last,
        Heard::Subscribed(b"a".to_vec()),
        "what was missed in between is asked for"
    );
    assert!(all.has(b"a"));
}

#[test]
fn what_is_refused_is_not_asked_for_again_while_it_is_wanted() {
    let refusal =
        || Reply::Error("NOPERM this user has no permissions to access the channel".into());
    let mut all = Subscriptions::default();
    want(&mut all, &["a", "b"]);
    assert_eq!(heard(&mut all, refusal()), Heard::Refused(b"a".to_vec()));
    assert_eq!(
        heard(&mut all, subscribed("b")),
        Heard::Subscribed(b"b".to_vec())
    );
    assert_eq!(want(&mut all, &["a", "b"]), [""; 0]);
    assert_eq!(want(&mut all, &["b"]), [""; 0], "there is nothing to end");
    assert_eq!(want(&mut all, &["a", "b"]), ["SUBSCRIBE a"]);
}

#[test]
fn what_makes_no_sense_ends_the_connection() {
    let refusal =
        || Reply::Error("NOPERM this user has no permissions to run 'unsubscribe'".into());
    let mut all = Subscriptions::default();
    for nonsense in [
        refusal(),
        subscribed("a"),
        unsubscribed("a"),
        Reply::Integer(1),
        Reply::Array(Vec::new()),
    ] {
        all.hear(nonsense).unwrap_err();
    }
    want(&mut all, &["a"]);
    let mut other = all.clone();
    other.hear(subscribed("b")).unwrap_err();
    heard(&mut all, subscribed("a"));
    want(&mut all, &[]);
    assert_eq!(all.hear(refusal()).unwrap_err().code(), Code::Forbidden);
}
