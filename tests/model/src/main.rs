//! Walks through every state of small worlds in which the operations that ship take, renew and release a lock.
//!
//! The values are those that a client runs, and the nodes run the scripts' twins. Some worlds lack what makes a lock safe:
//! there the counter-example must be found.
//!
//! Arguments: `--deep` for larger worlds; `--world NAME` for one world alone; `--draw` to draw the picture of what was seen of
//! the life of a lease anew, which is compared otherwise.

mod client;
mod life;
mod memo;
mod network;
mod nodes;
mod picture;
mod properties;
mod shared;
mod world;
mod worlds;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Path as Steps};

use life::{Seen as Lives, Transitions};
use properties::GRANTED;
use world::{Action, State};
use worlds::{Case, Size};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let draws = arguments == ["--draw"];
    let (size, name) = match arguments[..] {
        [] | ["--draw"] => (Size::Small, None),
        ["--deep"] => (Size::Deep, None),
        ["--world", name] => (Size::Small, Some(name)),
        ["--deep", "--world", name] => (Size::Deep, Some(name)),
        _ => {
            eprintln!("usage: tallylock-model [--deep] [--world NAME] | --draw");
            return ExitCode::from(2);
        }
    };
    let mut cases = worlds::cases(size);
    cases.retain(|case| name.is_none_or(|name| case.name == name));
    if cases.is_empty() {
        eprintln!("there is no world of this name");
        return ExitCode::from(2);
    }
    println!(
        "{:<60} {:>5} {:>10} {:>6} {:>6}  verdict",
        "world", "nodes", "states", "depth", "s"
    );
    let lives = Lives::default();
    let are_as_expected = cases.into_iter().map(|case| check(case, size, &lives));
    let are_as_expected: Vec<bool> = are_as_expected.collect();
    let is_whole = are_as_expected.into_iter().all(|is| is);
    // What is seen of one world, or of others, is another picture.
    let is_pictured =
        || name.is_some() || size == Size::Deep || picture(&lives.transitions(), draws);
    if is_whole && is_pictured() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Draws the picture of what was seen, or compares it; whether it is as it should be.
fn picture(seen: &Transitions, draws: bool) -> bool {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(picture::FILE);
    let result = picture::drawn(seen).and_then(|drawn| {
        if draws {
            return std::fs::write(&file, drawn).map_err(|error| error.to_string());
        }
        match std::fs::read_to_string(&file) {
            Ok(there) if there == drawn => Ok(()),
            Ok(_) => Err("it is not what was seen; `make picture` draws it anew".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    });
    match &result {
        Ok(()) => println!("{}: all {} steps that were seen", picture::FILE, seen.len()),
        Err(why) => println!("{}: {why}", picture::FILE),
    }
    result.is_ok()
}

/// What was seen in a world.
struct Seen {
    states: usize,
    /// There are more than it was ready to walk through.
    is_cut_short: bool,
    depth: usize,
    /// What is broken, with what led to it, and that the lock can be granted.
    found: HashMap<&'static str, Steps<State, Action>>,
}

/// Walks through a world and prints a line; whether it is as it should be.
fn check(case: Case, size: Size, lives: &Lives) -> bool {
    let Case {
        name,
        world,
        breaks,
    } = case;
    let seen_there = Arc::clone(&world.seen);
    let (started, nodes, most) = (Instant::now(), world.clocks.len(), size.most_moves());
    let Seen {
        states,
        depth,
        found,
        is_cut_short,
    } = walk(world, breaks, most);
    // Others are left at what is broken, wherever that is found first.
    if breaks.is_none() {
        lives.add_all(&seen_there);
    }
    let seconds = started.elapsed().as_secs_f64();
    let is_unbroken = found.keys().eq([&GRANTED]);
    let (is_as_expected, verdict) = match breaks {
        Some(property) if found.contains_key(property) => {
            (true, format!("broken, as it must be: {property}"))
        }
        None if is_unbroken && !is_cut_short => (true, "holds".to_owned()),
        None if is_unbroken => (
            size.may_be_cut_short(),
            format!("NOT ALL SEEN: nothing is broken in the first {most} moves"),
        ),
        _ => (false, "NOT AS EXPECTED".to_owned()),
    };
    println!("{name:<60} {nodes:>5} {states:>10} {depth:>6} {seconds:>6.1}  {verdict}");
    if !is_as_expected {
        report(breaks.unwrap_or(GRANTED), found);
    }
    is_as_expected
}

/// Walks until all was seen, or something that is broken.
fn walk(world: worlds::World, breaks: Option<&'static str>, most: usize) -> Seen {
    let enough = match breaks {
        None => HasDiscoveries::AnyFailures,
        Some(property) => HasDiscoveries::AnyOf([property].into()),
    };
    // Depth first keeps the least in memory.
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let checker = world.checker().threads(threads).finish_when(enough);
    let checker = checker.target_state_count(most).spawn_dfs().join();
    Seen {
        states: checker.unique_state_count(),
        is_cut_short: checker.state_count() >= most,
        depth: checker.max_depth(),
        found: checker.discoveries(),
    }
}

/// Tells what was found that should not be there, or not found that should.
fn report(wanted: &str, found: HashMap<&'static str, Steps<State, Action>>) {
    if !found.contains_key(wanted) {
        println!("  not found: {wanted}");
    }
    for (property, path) in found {
        if property != GRANTED && property != wanted {
            println!("  found broken: {property}, after");
            for action in path.into_actions() {
                println!("    {action:?}");
            }
        }
    }
}
