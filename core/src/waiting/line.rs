//! The waiters of one client for one lock.

use std::collections::VecDeque;

use crate::error::{Code, Error};
use crate::step::{Event, Notice};

/// Those of one client who wait for a lock, in the order in which they came.
///
/// Only the first asks the server, so that a release wakes one of them and not all. It is notified when there is something to
/// hear, and when it has come to be the first. A notice that the first has not taken is the next one's.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Line {
    waiters: VecDeque<Ticket>,
    joined: u64,
    news: News,
    /// Whether releases are told.
    listening: bool,
    /// A first one was told of a release, and has neither been granted nor denied the lock since.
    is_racing: bool,
    /// Another client was faster once, and not for long enough since then.
    has_rivals: bool,
    /// How many in a row had the lock after they were told of a release.
    won: u32,
    /// What the server last said to a first one.
    denial: Option<Error>,
}

/// A place in a [`Line`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(u64);

/// What the first does not know yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
enum News {
    #[default]
    None,
    /// That it is the first, and that the one before it has the lock.
    Forward,
    /// That the lock may be free: something may have been missed.
    Missed,
    /// That the lock was released.
    Released,
}

/// After how many that were faster than all others it is assumed that there are none. At that, and at each power of two from
/// there on, it is found out whether there are: who is nearest to the server would never learn it otherwise.
const ALONE_AFTER: u32 = 16;

impl Line {
    /// Stands at the end. Whoever is the first then asks at once, without a notice.
    pub fn join(&mut self) -> Ticket {
        self.joined += 1;
        let ticket = Ticket(self.joined);
        self.waiters.push_back(ticket);
        ticket
    }

    /// Leaves, with the lock or without, wherever this one stands; nothing happens if it has left.
    pub fn leave(&mut self, ticket: Ticket, granted: bool) {
        if self.is_first(ticket) {
            // Asked before the holder releases it, the next would be denied; asked at the same time, it would shut others out
            // who come from further away. Who gives up may have taken a notice that nobody has acted on.
            let news = if granted { News::Forward } else { News::Missed };
            self.news = self.news.max(news);
            if core::mem::take(&mut self.is_racing) && granted {
                self.won = self.won.saturating_add(1);
                self.has_rivals &= self.won < ALONE_AFTER;
            }
        }
        self.waiters.retain(|waiter| *waiter != ticket);
        if self.is_empty() {
            self.news = News::None;
        }
    }

    /// Whether this one is the first.
    pub fn is_first(&self, ticket: Ticket) -> bool {
        self.first() == Some(ticket)
    }

    /// The first.
    pub fn first(&self) -> Option<Ticket> {
        self.waiters.front().copied()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Takes in that the lock was released.
    pub fn released(&mut self) {
        self.tell(News::Released);
    }

    /// Takes in whether releases are told from now on. At both ends of the time in which they are, one may have been missed.
    pub fn listen(&mut self, listening: bool) {
        if listening || self.listening {
            self.tell(News::Missed);
        }
        self.listening = listening;
    }

    /// Whether releases are told.
    pub fn is_listening(&self) -> bool {
        self.listening
    }

    /// Who is to be woken: the first, if there is a notice for it.
    pub fn due(&self) -> Option<Ticket> {
        self.first().filter(|_| self.news != News::None)
    }

    /// The notice for this waiter, if there is one. It is given once.
    pub fn notice_for(&mut self, ticket: Ticket) -> Option<Event> {
        if self.due() != Some(ticket) {
            return None;
        }
        let notice = match (core::mem::take(&mut self.news), self.listening) {
            (_, false) => Notice::Deaf,
            (News::Forward | News::None, true) => Notice::Forward,
            (News::Missed, true) => Notice::Heard,
            (News::Released, true) => {
                self.is_racing = true;
                let finds_out = self.won >= ALONE_AFTER && self.won.is_power_of_two();
                if self.has_rivals || finds_out {
                    Notice::Contended
                } else {
                    Notice::Heard
                }
            }
        };
        Some(Event::Notified(notice))
    }

    /// Takes in what the first was told, each time that it was, or failed with.
    pub fn deny(&mut self, error: &Error) {
        if core::mem::take(&mut self.is_racing) {
            (self.has_rivals, self.won) = (true, 0);
        }
        if matches!(error.code(), Code::Busy | Code::Timeout | Code::Unavailable) {
            self.denial = Some(error.clone());
        }
    }

    /// The error of one whose time was over before it asked: what those before it were told, if that is known.
    pub fn error_of_unasked(&self, error: Error) -> Error {
        self.denial.clone().unwrap_or(error)
    }

    fn tell(&mut self, news: News) {
        if !self.is_empty() {
            self.news = self.news.max(news);
        }
    }
}
