//! The connection over which a client hears of releases, for as long as somebody waits for one.
//!
//! It is JavaScript's; when it is opened and closed, and what is sent over it, the core says. Nothing runs for it: all that
//! happens to it is an event, and it has one alarm.

#![cfg_attr(
    not(feature = "waiting"),
    allow(
        dead_code,
        unused_imports,
        reason = "nothing of this is in a file that hears of nothing"
    )
)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tallylock_core::time::Instant;
use tallylock_core::waiting::{Heard, KEPT_IDLE, Subscriptions, reopened_after};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::{Client, Shared};
use crate::reply;
use crate::slots::Number;

/// What a client hears releases by.
#[derive(Default)]
pub(crate) struct Hearing {
    state: RefCell<State>,
    /// How often in a row nothing came of it.
    failures: Cell<u32>,
}

#[derive(Default)]
enum State {
    #[default]
    Closed,
    /// There was one, or an attempt at it; it is opened again at the alarm.
    Lost,
    Opening,
    Open(Subscriptions),
}

/// By this number the alarm is known among the leases that are to be looked at: none has it.
pub(crate) const ALARM: Number = -1.0;

#[cfg(feature = "waiting")]
#[wasm_bindgen]
impl Client {
    /// Takes in that the connection for subscriptions is there.
    pub fn listens(&self) {
        let shared = self.shared();
        let open = State::Open(Subscriptions::default());
        shared.hearing.state.replace(open);
        tend(shared);
    }

    /// Takes in what came over the connection for subscriptions, in RESP.
    pub fn heard(&self, replies: &[u8]) {
        let shared = self.shared();
        for reply in reply::decode(replies).unwrap_or_default() {
            let heard = match &mut *shared.hearing.state.borrow_mut() {
                State::Open(subscriptions) => subscriptions.hear(reply),
                _ => return,
            };
            let waiters = &shared.waiters;
            match heard {
                Ok(Heard::Message(channel)) => waiters.released(&channel),
                Ok(Heard::Subscribed(channel)) => {
                    shared.hearing.failures.set(0);
                    waiters.listen(&channel, true);
                }
                Ok(Heard::Refused(channel)) => waiters.listen(&channel, false),
                Ok(Heard::Nothing) => tend(shared),
                Err(_) => {
                    shared.link.host.hush();
                    return lost(shared);
                }
            }
        }
    }

    /// Takes in that the connection for subscriptions is lost, or that there will be none.
    pub fn deaf(&self) {
        lost(self.shared());
    }
}

/// Sees to the connection after what is wanted of it has changed.
pub(crate) fn tend(shared: &Rc<Shared>) {
    let wanted = shared.waiters.wanted();
    if wanted.is_empty() && shared.is_closed() {
        return close(shared);
    }
    let mut state = shared.hearing.state.borrow_mut();
    let subscriptions = match &mut *state {
        State::Open(subscriptions) => subscriptions,
        State::Closed if !wanted.is_empty() => {
            drop(state);
            return open(shared);
        }
        State::Closed | State::Lost | State::Opening => return,
    };
    let commands = subscriptions.want(&wanted);
    let is_idle = subscriptions.is_idle();
    let mut told = wanted;
    told.retain(|channel| subscriptions.has(channel));
    // Nothing is borrowed any more: who is told may act at once.
    drop(state);
    let host = &shared.link.host;
    if !commands.is_empty() {
        host.subscribe(commands.len(), &reply::encode(&commands));
    }
    if is_idle {
        set_alarm(shared, KEPT_IDLE);
    } else {
        host.unwatch(ALARM, false);
    }
    for channel in told {
        shared.waiters.is_told_already(&channel);
    }
}

/// Goes on after the alarm.
pub(crate) fn alarm(shared: &Rc<Shared>) {
    let is_wanted = !shared.waiters.wanted().is_empty();
    let state = shared.hearing.state.borrow();
    let (is_opening, is_open) = match &*state {
        State::Opening => (true, false),
        State::Open(_) => (false, true),
        State::Closed | State::Lost => (false, false),
    };
    drop(state);
    match (is_opening, is_wanted) {
        (true, _) => {
            shared.link.host.hush();
            lost(shared);
        }
        (false, true) if is_open => {}
        (false, true) => open(shared),
        (false, false) => close(shared),
    }
}

fn open(shared: &Rc<Shared>) {
    #[cfg(feature = "memory")]
    if shared.link.memory.is_some() {
        // A server in memory tells by itself.
        for channel in shared.waiters.wanted() {
            shared.waiters.is_told_already(&channel);
        }
        return;
    }
    if shared.link.host.listen() {
        shared.hearing.state.replace(State::Opening);
        set_alarm(shared, shared.timeout());
    } else {
        // The transport knows no subscriptions.
        shared.hearing.state.replace(State::Closed);
    }
}

/// Where nothing was ever subscribed, it is tried again later and later.
fn lost(shared: &Rc<Shared>) {
    let Hearing { state, failures } = &shared.hearing;
    state.replace(State::Lost);
    let after = reopened_after(shared.link.jitter(), failures.get());
    failures.set(failures.get().saturating_add(1));
    set_alarm(shared, after);
    for channel in shared.waiters.wanted() {
        shared.waiters.listen(&channel, false);
    }
}

fn close(shared: &Rc<Shared>) {
    shared.hearing.state.replace(State::Closed);
    shared.hearing.failures.set(0);
    shared.link.host.unwatch(ALARM, false);
    shared.link.host.hush();
}

fn set_alarm(shared: &Rc<Shared>, after: u64) {
    let at: Instant = shared.now().plus(after);
    shared.link.host.watch(ALARM, at.as_millis() as f64);
}
