//! What was found out before: the same thing happens to the same client, or node, in very many states.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use tallylock_core::memory::Memory;

use crate::client::{Client, Effects, Occasion};
use crate::life::Cause;
use crate::network::{Reply, Request};
use crate::shared::Shared;
use crate::world::World;

/// What becomes of a client, and what it does.
pub(crate) type Met = Rc<(Shared<Client>, Effects)>;

/// What becomes of a node, and what it answers.
pub(crate) type Executed = Rc<(Shared<Memory>, Shared<Reply>)>;

/// So much is remembered of a kind; then all of it is forgotten, so that a large world does not fill the memory.
const MOST: usize = 100_000;

thread_local! {
    // Each thread has its own, which needs no lock.
    static MET: RefCell<Memo<(u64, u64), Met>> = RefCell::default();
    static EXECUTED: RefCell<Memo<(u64, u64), Executed>> = RefCell::default();
    static ADVANCED: RefCell<Memo<(u64, u64), Shared<Memory>>> = RefCell::default();
}

type Memo<K, V> = HashMap<K, V>;

/// Lets something happen to a client.
pub(crate) fn met(world: &World, client: &Shared<Client>, occasion: &Occasion, now: u64) -> Met {
    let mut hasher = DefaultHasher::new();
    (occasion, &world.habits, now).hash(&mut hasher);
    let key = (client.key(), hasher.finish());
    recalled(&MET, key, || {
        let (from, mut after) = (client.stage(), client.clone());
        let effects = after.change(|client| client.meet(&world.habits, occasion, now));
        let to = effects.ended.unwrap_or(after.stage());
        if from != to && !from.is_lost() {
            world.seen.add(from, to, Cause::of(occasion));
        }
        Rc::new((after, effects))
    })
}

/// Executes a request.
pub(crate) fn executed(node: &Shared<Memory>, request: &Shared<Request>) -> Executed {
    recalled(&EXECUTED, (node.key(), request.key()), || {
        let mut after = node.clone();
        let outcome = after.change(|node| node.execute(&request.call));
        let reply = Reply {
            operation: request.operation,
            call: request.call.id,
            outcome,
        };
        Rc::new((after, Shared::new(reply)))
    })
}

/// Lets so many milliseconds pass on a node.
pub(crate) fn advanced(node: &Shared<Memory>, millis: u64) -> Shared<Memory> {
    recalled(&ADVANCED, (node.key(), millis), || {
        let mut after = node.clone();
        after.change(|node| node.advance(millis));
        after
    })
}

fn recalled<K: Eq + Hash, V: Clone>(
    memo: &'static std::thread::LocalKey<RefCell<Memo<K, V>>>,
    key: K,
    find_out: impl FnOnce() -> V,
) -> V {
    memo.with_borrow_mut(|memo| {
        if memo.len() >= MOST {
            memo.clear();
        }
        memo.entry(key).or_insert_with(find_out).clone()
    })
}
