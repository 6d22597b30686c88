//! How the nodes have answered so far, and what follows.

use crate::ballot::{Ballot, Voter};
use crate::error::{Code, Error, Reason};
use crate::step::Reply;

/// What a node says about a lock.
pub(super) enum Word {
    /// It did what was asked.
    Yes,
    /// The lock is not there.
    Absent,
    /// Another holds it.
    Taken,
    /// It is ours, and its fence is higher than what was asked.
    Outbid,
    /// It does not say: this is why.
    Refused(Error),
}

/// The answers to a ballot, counted. With one node, its answer decides.
pub(super) struct Tally {
    nodes: usize,
    pub(super) yes: usize,
    pub(super) absent: usize,
    pub(super) taken: usize,
    outbid: usize,
    pending: usize,
    /// They were silent, or not to be reached.
    unreachable: usize,
    refused: usize,
    /// The first that was not reached, and the first that refused.
    silence: Option<Error>,
    refusal: Option<Error>,
    /// A node may have done, or may do yet, what was asked without our knowing.
    pub(super) unsettled: bool,
}

impl Tally {
    /// Counts what the nodes have said; `understand` says nothing of a reply that no script gives.
    pub(super) fn of(
        ballot: &Ballot,
        understand: &mut dyn FnMut(&Voter, &Reply) -> Option<Word>,
    ) -> Self {
        let mut tally = Self {
            nodes: ballot.voters().len(),
            yes: 0,
            absent: 0,
            taken: 0,
            outbid: 0,
            pending: 0,
            unreachable: 0,
            refused: 0,
            silence: None,
            refusal: None,
            unsettled: false,
        };
        for voter in ballot.voters() {
            match &voter.answer {
                None => {
                    tally.pending += 1;
                    tally.unsettled |= voter.round.is_unsettled();
                }
                Some(Ok(reply)) => match understand(voter, reply) {
                    Some(Word::Yes) => tally.yes += 1,
                    Some(Word::Absent) => tally.absent += 1,
                    Some(Word::Taken) => tally.taken += 1,
                    Some(Word::Outbid) => tally.outbid += 1,
                    Some(Word::Refused(error)) => tally.fail(error),
                    None => {
                        tally.unsettled = true;
                        tally.fail(Error::unexpected(reply));
                    }
                },
                Some(Err(error)) => {
                    tally.unsettled |= voter.round.is_unsettled();
                    tally.fail(error.clone());
                }
            }
        }
        tally
    }

    /// Whether a quorum has done what was asked.
    pub(super) fn has_quorum(&self) -> bool {
        self.yes >= self.quorum()
    }

    /// Whether there may be a quorum yet.
    pub(super) fn is_open(&self) -> bool {
        self.yes + self.pending >= self.quorum()
    }

    /// Whether a quorum holds nothing of ours, and hence whose lock it is or was.
    pub(super) fn is_gone(&self) -> bool {
        self.yes + self.absent + self.taken >= self.quorum()
    }

    /// Whether others are in the way, and not that too few nodes can be asked.
    pub(super) fn is_contended(&self) -> bool {
        self.taken > 0 && self.unreachable.max(self.refused) <= self.spared()
    }

    /// Whether there is one node, whose answer is all there is to say.
    pub(super) fn is_of_one(&self) -> bool {
        !cfg!(feature = "nodes") || self.nodes == 1
    }

    /// Why the lock is no longer ours, if a quorum says so: by the words of most.
    pub(super) fn loss(&self) -> Option<Reason> {
        if self.absent + self.taken < self.quorum() {
            None
        } else if self.taken >= self.absent {
            Some(Reason::TakenOver)
        } else {
            Some(Reason::Expired)
        }
    }

    /// The error of a ballot that was won by neither side; `done` is what the nodes were to do ("extended").
    ///
    /// What is done by a minority is undone by whoever asked, or its outcome is not known.
    pub(super) fn failure(&self, done: &str) -> Error {
        if self.is_of_one() {
            let error = self.refusal.clone().or_else(|| self.silence.clone());
            return error.unwrap_or_else(|| Error::new(Code::Unavailable, "the server is silent"));
        }
        let code = match (&self.refusal, &self.silence) {
            (Some(refusal), _) if self.refused > self.spared() => refusal.code(),
            (_, Some(silence)) if self.unreachable > self.spared() => silence.code(),
            (Some(refusal), _) => refusal.code(),
            (None, Some(silence)) => silence.code(),
            (None, None) => Code::Unavailable,
        };
        Error::new(code, self.counts(done))
    }

    /// This failure, or that the outcome is not known where some of several nodes did what was asked, or may have.
    pub(super) fn or_unknown(&self, failure: Error) -> Error {
        if self.is_of_one() || !(self.yes > 0 || self.unsettled) {
            return failure;
        }
        Error::new(Code::OutcomeUnknown, failure.detail())
    }

    /// The answers in words.
    pub(super) fn counts(&self, done: &str) -> String {
        let counts = [
            (done, self.yes),
            ("held by another on", self.taken),
            ("gone from", self.absent),
            ("outbid by", self.outbid),
            ("unreachable", self.unreachable),
            ("refused by", self.refused),
        ];
        let said = counts.into_iter().filter(|(_, count)| *count > 0);
        let said: Vec<String> = said
            .map(|(what, count)| format!("{what} {count}"))
            .collect();
        let mut text = format!("{} of {} nodes", said.join(", "), self.nodes);
        for error in [&self.refusal, &self.silence].into_iter().flatten() {
            text.push_str(": ");
            text.push_str(error.detail());
        }
        text
    }

    fn fail(&mut self, error: Error) {
        match error.code() {
            Code::Unavailable | Code::Timeout | Code::Conflict | Code::OutcomeUnknown => {
                self.unreachable += 1;
                // That one could not be reached at all says more than that another was silent.
                if self
                    .silence
                    .as_ref()
                    .is_none_or(|first| first.code() == Code::Timeout)
                {
                    self.silence = Some(error);
                }
            }
            _ => {
                self.refused += 1;
                self.refusal.get_or_insert(error);
            }
        }
    }

    /// How many nodes decide.
    pub(super) fn quorum(&self) -> usize {
        if self.is_of_one() {
            1
        } else {
            self.nodes / 2 + 1
        }
    }

    /// How many nodes a quorum can do without.
    fn spared(&self) -> usize {
        self.nodes - self.quorum()
    }
}
