"""The mutants: what is taken out of the lock's protocol or a client's ways, and what must notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class World:
    """A world of the model; it must be found broken, or not broken where it must be."""

    name: str


@dataclass(frozen=True)
class Simulation:
    """The simulation, in which a seed must break a promise."""


@dataclass(frozen=True)
class RustTest:
    """A test of a crate that needs no server, by the file that it is in and its name."""

    file: str
    name: str


Catcher = World | Simulation | RustTest


@dataclass(frozen=True)
class Mutant:
    """A change of one text in one file, where the text is there exactly once."""

    name: str
    file: str
    before: str
    after: str
    caught_by: Catcher


ONE_NODE = World("one node: lost connections, a clock that gains")
NEXT_IN_LINE = RustTest(
    "core/tests/waiting_line.rs", "whoever_becomes_the_first_is_notified_in_the_order_in_which_they_came"
)
ASKED_ORDER = RustTest("bindings/rust/src/opening.rs", "calls_go_out_in_the_order_in_which_they_were_asked")

MUTANTS = (
    Mutant(
        name="the drift is not taken off",
        file="core/src/time.rs",
        before="    ttl.0 / 100 + 2\n",
        after="    let _ = ttl;\n    0\n",
        caught_by=ONE_NODE,
    ),
    Mutant(
        name="the time counts from the reply",
        file="core/src/lock/acquire.rs",
        before="let valid_until = self.lock.ttl().valid_until(sent_at);",
        after="let valid_until = self.lock.ttl().valid_until(sent_at.max(now));",
        caught_by=ONE_NODE,
    ),
    Mutant(
        name="an acquire in vain is not undone",
        file="core/src/lock/acquire.rs",
        before="        if self.unsettled {\n",
        after="        if self.unsettled && seats.is_empty() {\n",
        caught_by=World("one node: clients that wait, are told and stop"),
    ),
    Mutant(
        name="half of the nodes are a quorum",
        file="core/src/lock/tally.rs",
        before="            self.nodes / 2 + 1\n",
        after="            self.nodes / 2\n",
        caught_by=World("three nodes: slow connections"),
    ),
    Mutant(
        name="the highest fence is not written back",
        file="core/src/lock/acquire.rs",
        before="if self.settings.nodes.is_one() || now >= valid_until {",
        after="if self.settings.nodes.count() > 0 {",
        caught_by=World("three nodes: free clocks, fences kept"),
    ),
    Mutant(
        name="a fence is written back over a higher one",
        file="core/src/lock/raise.rs",
        before="        if last[0] != b'-' && (last.len(), &last) > (arguments[1].len(), &arguments[1]) {\n",
        after="        if last.is_empty() {\n",
        caught_by=RustTest("core/tests/redlock_fence.rs", "a_node_that_outbids_the_quorum_raises_the_fence"),
    ),
    Mutant(
        name="a released token is used again",
        file="core/src/lock/acquire.rs",
        before="        self.seed = self.seed.next();\n",
        after="",
        caught_by=Simulation(),
    ),
    Mutant(
        name="a release frees whatever is there",
        file="core/src/lock/release.rs",
        before="""        Some(holder) if holder != arguments[0] => Ok(twin::text("taken")),\n""",
        after="",
        caught_by=ONE_NODE,
    ),
    Mutant(
        name="a release does not wait for the renewal under way",
        file="core/src/lock/renewal.rs",
        before="let waits = matches!(&self.state, State::Renewing(attempt) if !attempt.awaited.is_empty());",
        after="let waits = false;",
        caught_by=RustTest("core/tests/renewal.rs", "what_is_under_way_is_waited_for_and_no_more_is_sent"),
    ),
    Mutant(
        name="a loss is counted each time that it is seen",
        file="core/src/lock/news.rs",
        before="end.filter(|_| !self.has_ended).map(",
        after="end.map(",
        caught_by=RustTest(
            "core/tests/metrics.rs", "a_loss_is_told_with_the_time_until_the_deadline_however_late_it_is_seen"
        ),
    ),
    Mutant(
        name="all in line are told of a release",
        file="core/src/waiting/line.rs",
        before="if self.due() != Some(ticket) {",
        after="if self.due().is_none() {",
        caught_by=RustTest("core/tests/waiting_line.rs", "the_first_alone_is_notified_and_once"),
    ),
    Mutant(
        name="whoever comes last is the first in line",
        file="core/src/waiting/line.rs",
        before="self.waiters.push_back(ticket);",
        after="self.waiters.push_front(ticket);",
        caught_by=NEXT_IN_LINE,
    ),
    Mutant(
        name="the next in line is not told when the first leaves",
        file="core/src/waiting/line.rs",
        before="            self.news = self.news.max(news);\n            if core::mem::take",
        after="            let _ = news;\n            if core::mem::take",
        caught_by=NEXT_IN_LINE,
    ),
    Mutant(
        name="all in line ask at once",
        file="bindings/rust/src/waiters.rs",
        before="        if self.is_first {\n",
        after="        if self.is_first || !self.is_first {\n",
        caught_by=RustTest("bindings/rust/src/waiters.rs", "the_first_alone_asks_at_once"),
    ),
    Mutant(
        name="a lost lease is counted as abandoned too",
        file="bindings/rust/src/held.rs",
        before="if !renewal.lease().has_told_its_end() && self.process",
        after="if self.process",
        caught_by=RustTest("bindings/rust/tests/metrics.rs", "the_blocking_client_in_memory"),
    ),
    Mutant(
        name="calls that wait for a connection change places",
        file="bindings/rust/src/opening.rs",
        before="for place in queue.drain(..) {",
        after="for place in queue.drain(..).rev() {",
        caught_by=ASKED_ORDER,
    ),
    Mutant(
        name="a call is sent although it was given up",
        file="bindings/rust/src/opening.rs",
        before="        drop(self.take());\n",
        after="",
        caught_by=ASKED_ORDER,
    ),
    Mutant(
        name="a call is sent although it is too late for it",
        file="bindings/rust/src/opening.rs",
        before="Place::Waiting(call, until) if now < until => {",
        after="Place::Waiting(call, until) if now < until || now >= until => {",
        caught_by=ASKED_ORDER,
    ),
    Mutant(
        name="a release overtakes its acquire at one of several nodes",
        file="bindings/rust/src/nodes.rs",
        before="let at_once = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;",
        after="let at_once = Poll::Pending;",
        caught_by=RustTest("bindings/rust/src/nodes.rs", "a_call_that_nobody_goes_on_with_has_its_place_all_the_same"),
    ),
)
