//! What must never be seen in a world, and what must.

use stateright::{Model, Property};

use crate::client::TTL;
use crate::nodes;
use crate::world::{Action, State, World};

pub(crate) const EXCLUSION: &str = "never two valid leases";
pub(crate) const HELD: &str = "what is valid is held by a quorum of nodes";
pub(crate) const FENCES: &str = "fences are distinct and in the order of grants";
pub(crate) const LOSS: &str = "a lost lease is known by its deadline";
pub(crate) const TTLS: &str = "no key outlives its TTL";
pub(crate) const UNDONE: &str = "what was stopped, failed or was released leaves nothing";
pub(crate) const GRANTED: &str = "the lock can be granted";

/// How long a fence is kept, in milliseconds.
const FENCE_TTL: u64 = 24 * 3600 * 1000;

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.beginning()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.moves(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        state.act(self, action);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(EXCLUSION, |_, state: &State| state.is_exclusive()),
            Property::always(HELD, |_, state: &State| state.is_true_to_its_holders()),
            Property::always(FENCES, |_, state: &State| !state.is_out_of_order),
            Property::always(LOSS, |_, state: &State| {
                let mut clients = state.clients.iter();
                clients.all(|client| client.knows_its_loss(state.now))
            }),
            Property::always(TTLS, |_, state: &State| state.ends_by_itself()),
            // What was sent over a connection that is lost may arrive after the undoing, and ends with its TTL.
            Property::always(UNDONE, |world: &World, state: &State| {
                state.left.cuts < world.faults.cuts || state.has_undone_all()
            }),
            Property::sometimes(GRANTED, |_, state: &State| state.is_granted()),
        ]
    }
}

impl State {
    fn is_granted(&self) -> bool {
        let mut clients = self.clients.iter();
        clients.any(|client| client.holds(self.now).is_some())
    }

    fn is_exclusive(&self) -> bool {
        self.valid().count() <= 1
    }

    fn is_true_to_its_holders(&self) -> bool {
        self.valid().all(|token| {
            let locks = self.nodes.iter().filter_map(|node| nodes::lock(node));
            let ours = locks.filter(|(value, _)| *value == token.as_bytes());
            ours.count() > self.nodes.len() / 2
        })
    }

    fn ends_by_itself(&self) -> bool {
        self.nodes.iter().all(|node| {
            let is_short = nodes::lock(node).is_none_or(|(_, left)| left <= TTL);
            let mut ttls = node.keys().map(|(.., ttl)| ttl);
            is_short && ttls.all(|ttl| ttl.is_some_and(|ttl| ttl <= FENCE_TTL))
        })
    }

    /// Whether no node has a lock of a client that has none, once all that it sent has arrived.
    fn has_undone_all(&self) -> bool {
        let clients = self.clients.iter().enumerate();
        let mut idle = clients.filter(|(_, client)| client.has_undone_all());
        idle.all(|(number, client)| {
            let nodes = self.nodes.iter().enumerate();
            let mut reached = nodes.filter(|(node, _)| !self.is_asking(number, *node));
            reached.all(|(_, node)| {
                nodes::lock(node).is_none_or(|(value, _)| !client.has_asked_for(value))
            })
        })
    }
}
