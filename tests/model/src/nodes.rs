//! Nodes as the worlds need them: servers in memory that know the scripts.

use tallylock_core::key::{Key, Part};
use tallylock_core::lock::Steal;
use tallylock_core::memory::Memory;
use tallylock_core::request::Single;
use tallylock_core::script::Script;
use tallylock_core::settings::Settings;
use tallylock_core::step::{Call, CallId, Event, Lane, Next, Node, Operation};
use tallylock_core::time::Instant;
use tallylock_core::token::Seed;

use crate::client::{self, LOCK};

/// An empty node at that time of its own clock. It knows the scripts: a world in which each is sent twice the first time
/// would have more states, and no other.
pub(crate) fn starting(time: u64) -> Memory {
    let mut node = Memory::default();
    for script in [
        Script::LockAcquire,
        Script::LockExtend,
        Script::LockRaiseFence,
        Script::LockRelease,
        Script::LockSteal,
    ] {
        teach(&mut node, script);
    }
    let keys: Vec<Vec<u8>> = node.keys().map(|(key, ..)| key.to_vec()).collect();
    for key in keys {
        node.remove(&key);
    }
    node.advance(time);
    node
}

/// The lock's value, and how long it is still there, in milliseconds.
pub(crate) fn lock(node: &Memory) -> Option<(&[u8], u64)> {
    let mut keys = node.keys();
    let (_, value, left) = keys.find(|(key, ..)| *key == LOCK.as_bytes())?;
    Some((value?, left?))
}

pub(crate) fn has_fence(node: &Memory) -> bool {
    let fence = fence();
    node.keys().any(|(key, ..)| key == fence)
}

pub(crate) fn lose_fence(node: &mut Memory) {
    node.remove(&fence());
}

/// An operator takes the lock from whoever has it; gives the token, and the fence after that.
pub(crate) fn steal(node: &mut Memory) -> Option<(Vec<u8>, u64)> {
    let token = lock(node)?.0.to_vec();
    let steal = Steal::new(client::lock(), &token, "it hangs").expect("a reason");
    let (now, seed) = (Instant::from_millis(0), Seed::new([0; 16]));
    let (mut steal, step) = Single::start(steal, &Settings::default(), seed, now);
    let call = step.calls.first().expect("a question");
    let replied = Event::Replied {
        call: call.id,
        outcome: node.execute(call),
    };
    match steal.handle(now, replied).next {
        Next::Done(Ok(Some(stolen))) => Some((token, stolen.fence)),
        other => unreachable!("the lock is there: {other:?}"),
    }
}

fn fence() -> Vec<u8> {
    Key::new(LOCK).expect("a key").side(Part::Fence)
}

fn teach(node: &mut Memory, script: Script) {
    let words = [
        "EVAL",
        script.source(),
        "2",
        "key",
        "fence",
        "token",
        "1",
        "1",
    ];
    let command = words.map(|word| word.as_bytes().to_vec().into()).to_vec();
    let call = Call {
        id: CallId(0),
        node: Node::ONLY,
        lane: Lane::Shared,
        commands: vec![command],
    };
    node.execute(&call).expect("nothing is lost here");
}
