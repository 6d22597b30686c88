"""The mutants: what is taken out of the lock's protocol, and what must notice."""

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
class CoreTest:
    """A test of core, by its file and its name."""

    file: str
    name: str


Catcher = World | Simulation | CoreTest


@dataclass(frozen=True)
class Mutant:
    """A change of one text in one file, where the text is there exactly once."""

    name: str
    file: str
    before: str
    after: str
    caught_by: Catcher


ONE_NODE = World("one node: lost connections, a clock that gains")

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
        caught_by=CoreTest("redlock_fence", "a_node_that_outbids_the_quorum_raises_the_fence"),
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
        caught_by=CoreTest("renewal", "what_is_under_way_is_waited_for_and_no_more_is_sent"),
    ),
)
