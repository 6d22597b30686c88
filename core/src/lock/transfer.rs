//! Giving a lease to another process or thread.

use core::fmt;

use super::{Extend, Grant, Lock};
use crate::counter;
use crate::error::{Code, Error};
use crate::settings::Settings;
use crate::step::{Event, Next, Operation, Step};
use crate::time::Instant;
use crate::token::{Seed, Token};

/// The right to a lease that its holder gave away, as a text between two processes: the fence, a colon, the owner value.
///
/// It is the right to extend and release, so it belongs into no log.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Transferred {
    token: Token,
    fence: u64,
}

impl Transferred {
    pub(super) const fn new(token: Token, fence: u64) -> Self {
        Self { token, fence }
    }

    /// What a text says that [`text`](Self::text) made; `invalid_argument` for any other.
    pub fn read(text: &str) -> Result<Self, Error> {
        let parts = text.split_once(':').and_then(|(fence, token)| {
            let number = counter::parse(fence).and_then(|number| u64::try_from(number).ok())?;
            Some(Self::new(Token::read(token.as_bytes())?, number))
        });
        // Not even a part of it is shown: it may be a right with a typing error.
        parts.ok_or_else(|| {
            let detail = "this is no token of a transferred lease";
            Error::new(Code::InvalidArgument, detail)
        })
    }

    /// The text.
    pub fn text(&self) -> String {
        let token = String::from_utf8_lossy(self.token.as_bytes());
        format!("{}:{token}", self.fence)
    }

    /// Starts to take the lease over, for the TTL of `lock` from now.
    pub fn adopt(
        self,
        lock: Lock,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Adopt, Step<Result<Grant, Error>>) {
        // Until when it is the giver's is not known here; the server is asked.
        let never = Instant::from_millis(u64::MAX);
        let (extend, step) = Extend::start(lock, &self.token, never, settings, seed, now);
        let adopt = Adopt {
            transferred: self,
            extend,
        };
        let step = adopt.understand(step);
        (adopt, step)
    }
}

impl fmt::Debug for Transferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transferred")
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

/// Takes over a lease that another gave away, with the fence that it has.
///
/// Fails with `lost` if the lock is no longer held by this token. Repeated by itself after a lost reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Adopt {
    transferred: Transferred,
    extend: Extend,
}

impl Adopt {
    fn understand(&self, step: Step<Result<Instant, Error>>) -> Step<Result<Grant, Error>> {
        let next = match step.next {
            Next::WaitUntil(until) => Next::WaitUntil(until),
            Next::Done(extended) => Next::Done(extended.map(|valid_until| Grant {
                token: self.transferred.token.clone(),
                fence: self.transferred.fence,
                valid_until,
            })),
        };
        Step {
            calls: step.calls,
            next,
        }
    }
}

impl Operation for Adopt {
    type Output = Result<Grant, Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        let step = self.extend.handle(now, event);
        self.understand(step)
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.extend.met_refusal_of_scripts()
    }
}
