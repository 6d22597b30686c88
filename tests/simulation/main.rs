//! Thousands of lives of whole clients, each led by a seed: the loop that ships, servers in memory, a network that loses,
//! delays and reorders, and a clock that passes from one event to the next.
//!
//! `make simulate SEEDS=N` runs as many seeds, `make simulate SEED=N` one and prints what happened.

mod client;
mod network;
mod plan;
mod random;
mod trace;
mod watch;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use client::Client;
use plan::{Kept, NODES, Plan};
use random::Random;
use trace::LEGEND;
use watch::{Seen, TWO_LEASES};
use world::World;

/// How many seeds are run where nobody says how many.
const SEEDS: u64 = 200;

/// How a world came to its end.
#[derive(PartialEq, Debug)]
struct Ended {
    plan: String,
    nodes: usize,
    lines: Vec<String>,
    seen: Seen,
    /// The first thing that was wrong.
    fault: Option<String>,
}

impl Ended {
    /// All that happened, for people.
    fn story(&self, seed: u64) -> String {
        let mut story = format!("seed {seed}: {}\n{LEGEND}\n", self.plan);
        for line in &self.lines {
            let _ = writeln!(story, "{line}");
        }
        if let Some(fault) = &self.fault {
            let _ = write!(story, "seed {seed}: {fault}");
        }
        story
    }
}

#[test]
fn whatever_happens_the_lock_keeps_its_promises() {
    let number = |name| Some(std::env::var(name).ok()?.parse().expect("a number"));
    if let Some(seed) = number("SEED") {
        let ended = run(seed);
        println!("{}", ended.story(seed));
        assert!(ended.fault.is_none(), "seed {seed} breaks a promise");
        return;
    }
    let seeds = number("SEEDS").unwrap_or(SEEDS);
    let mut total = Seen::default();
    let mut worlds = BTreeMap::<usize, u64>::new();
    for seed in 1..=seeds {
        let ended = run(seed);
        assert!(ended.fault.is_none(), "{}", ended.story(seed));
        total.add(ended.seen);
        *worlds.entry(ended.nodes).or_default() += 1;
    }
    println!("{seeds} seeds: {total:?}, worlds by their nodes: {worlds:?}");
    assert!(NODES.iter().all(|nodes| worlds.contains_key(nodes)));
    let Seen {
        grants,
        refusals,
        releases,
        losses,
        writes,
        fenced_off,
    } = total;
    let counts = [grants, refusals, releases, losses, writes, fenced_off];
    assert!(
        counts.iter().all(|count| *count > 0),
        "it came to all of it"
    );
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 1..=20 {
        let ended = run(seed);
        assert!(ended.lines.len() > 10);
        assert_eq!(ended, run(seed));
    }
    assert_ne!(run(1).lines, run(2).lines);
}

#[test]
fn nodes_that_forget_their_keys_are_found_out() {
    let forgetful = |seed| {
        let mut random = Random::new(seed);
        let plan = Plan {
            kept: Kept::Nothing,
            restarts: Some((100, 300)),
            ..Plan::drawn(&mut random)
        };
        live(plan, random)
    };
    let finds_two = |seed| forgetful(seed).fault.as_deref() == Some(TWO_LEASES);
    assert!((1..=50).any(finds_two));
}

/// Lets the world of a seed live.
fn run(seed: u64) -> Ended {
    let mut random = Random::new(seed);
    live(Plan::drawn(&mut random), random)
}

/// Lets a world live until all clients have ended, or something is wrong.
fn live(plan: Plan, random: Random) -> Ended {
    let (clients, nodes) = (plan.clients, plan.nodes);
    let description = format!("{plan:?}");
    let world = Rc::new(RefCell::new(World::new(plan, random)));
    let mut lives: Vec<Option<Pin<Box<dyn Future<Output = ()>>>>> = (0..clients)
        .map(|client| {
            let life: Pin<Box<dyn Future<Output = ()>>> =
                Box::pin(Client::new(&world, client).live());
            Some(life)
        })
        .collect();
    let mut context = Context::from_waker(Waker::noop());
    while lives.iter().any(Option::is_some) && world.borrow().watch.fault.is_none() {
        for (client, life) in lives.iter_mut().enumerate() {
            let Some(awake) = life else { continue };
            if world.borrow_mut().is_paused(client) {
                continue;
            }
            if awake.as_mut().poll(&mut context).is_ready() {
                *life = None;
            }
        }
        let mut world = world.borrow_mut();
        if lives.iter().any(Option::is_some) && !world.happen() {
            world.watch.wrong("nobody can go on".into());
        }
    }
    drop(lives);
    let mut world = world.borrow_mut();
    if world.watch.fault.is_none() {
        world.run_out();
    }
    Ended {
        plan: description,
        nodes,
        lines: std::mem::take(&mut world.trace.lines),
        seen: world.watch.seen,
        fault: world.watch.fault.take(),
    }
}
