//! A world that a model checker walks through: clients, nodes, what is on its way between them, and time.
//!
//! Time stands still while anything happens, and passes to the next moment at which a client wants to be woken or a lock
//! ends. A request arrives and is answered within a moment, unless its connection is slow; then time may pass before it
//! arrives, and again before its reply does.

use std::collections::BTreeSet;
use std::sync::Arc;

use tallylock_core::memory::Memory;
use tallylock_core::step::{Event, Notice, Undelivered};
use tallylock_core::token::Token;

use crate::client::{Client, DRIFT, Habits, Occasion};
use crate::life::Seen;
use crate::memo;
use crate::network::{Line, Request};
use crate::nodes;
use crate::shared::Shared;

/// What there is in a world, and what may happen.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) clients: u8,
    /// How many locks each client takes.
    pub(crate) attempts: u8,
    pub(crate) habits: Habits,
    /// By how much each node's clock is ahead at the beginning, in milliseconds.
    pub(crate) clocks: Vec<u64>,
    pub(crate) faults: Faults,
    /// How many nodes may fail. Where all are alike, the first stands for each.
    pub(crate) frail: usize,
    /// No time passes after this moment, in milliseconds.
    pub(crate) horizon: u64,
    /// What leases were seen to become.
    pub(crate) seen: Arc<Seen>,
}

/// What may go wrong, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Faults {
    /// A connection is slow until nothing is on its way.
    pub(crate) delays: u8,
    /// A client is not woken when it wants to be.
    pub(crate) oversleeps: u8,
    /// A connection is lost; what was sent over it may arrive yet, at any time, in any order, or never.
    pub(crate) cuts: u8,
    /// A client wants to stop an acquire.
    pub(crate) stops: u8,
    /// A client is told that the lock may be free, whether it is or not.
    pub(crate) notices: u8,
    /// A node's clock runs ahead, by what a lease loses to drift.
    pub(crate) gains: u8,
    /// A node forgets everything.
    pub(crate) restarts: u8,
    /// A node loses the last fence.
    pub(crate) lost_fences: u8,
    /// An operator takes the lock from its holder.
    pub(crate) steals: u8,
}

#[derive(Clone, PartialEq, Hash, Debug)]
pub(crate) struct State {
    pub(crate) now: u64,
    pub(crate) nodes: Vec<Shared<Memory>>,
    pub(crate) clients: Vec<Shared<Client>>,
    /// The connections of the first client, then those of the next.
    lines: Vec<Shared<Line>>,
    /// Requests of connections that were lost, with their nodes.
    strays: Vec<(usize, Shared<Request>)>,
    pub(crate) left: Faults,
    /// All fences that were granted.
    fences: Shared<BTreeSet<u64>>,
    /// The token that the lock was stolen from.
    stolen: Option<Vec<u8>>,
    /// A fence was granted twice, or after a higher one.
    pub(crate) is_out_of_order: bool,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Action {
    /// A client begins to take the lock.
    Start(usize),
    /// A client lets go of it.
    Leave(usize),
    /// A client wants to stop its acquire.
    Stop(usize),
    /// A client is told that the lock may be free.
    Notify(usize, Notice),
    /// A client is woken.
    Wake(usize),
    /// The next request of a client arrives at a node, and its reply comes back at once.
    Exchange(usize, usize),
    /// The next request of a client arrives at a node, and its reply is on its way.
    Arrive(usize, usize),
    /// The next reply of a node comes to a client.
    Hear(usize, usize),
    /// A client's connection to a node is lost.
    Cut(usize, usize),
    /// A request of a connection that was lost arrives.
    Stray(usize),
    /// A node's clock runs ahead.
    Gain(usize),
    /// A node restarts empty.
    Restart(usize),
    /// A node loses its fence.
    LoseFence(usize),
    /// An operator takes the lock of a node from its holder.
    Steal(usize),
    /// Time passes until something may happen by it.
    Pass,
}

impl World {
    pub(crate) fn beginning(&self) -> State {
        let node = |ahead: &u64| Shared::new(nodes::starting(*ahead));
        let client = |number| Shared::new(Client::new(number, self.attempts, self.clocks.len()));
        let lines = usize::from(self.clients) * self.clocks.len();
        State {
            now: 0,
            nodes: self.clocks.iter().map(node).collect(),
            clients: (0..self.clients).map(client).collect(),
            lines: vec![Shared::new(Line::default()); lines],
            strays: Vec::new(),
            left: self.faults,
            fences: Shared::new(BTreeSet::new()),
            stolen: None,
            is_out_of_order: false,
        }
    }

    /// All that may happen in a state.
    pub(crate) fn moves(&self, state: &State, actions: &mut Vec<Action>) {
        let left = state.left;
        for (number, client) in state.clients.iter().enumerate() {
            // Clients are alike: they begin in their order.
            let is_next = number == 0 || state.clients[number - 1].has_begun();
            if is_next && client.can_start() {
                actions.push(Action::Start(number));
            }
            if client.is_holding() {
                actions.push(Action::Leave(number));
            }
            if client.is_acquiring() && left.stops > 0 {
                actions.push(Action::Stop(number));
            }
            if client.is_acquiring() && left.notices > 0 {
                let notices = [Notice::Heard, Notice::Deaf];
                actions.extend(notices.map(|notice| Action::Notify(number, notice)));
            }
            if client.until().is_some_and(|until| until <= state.now) {
                actions.push(Action::Wake(number));
            }
            for node in 0..state.nodes.len() {
                self.moves_on_line(state, number, node, actions);
            }
        }
        actions.extend((0..state.strays.len()).map(Action::Stray));
        if left.gains > 0 {
            actions.extend((0..self.frail).map(Action::Gain));
        }
        if left.restarts > 0 {
            actions.extend((0..self.frail).map(Action::Restart));
        }
        if left.lost_fences > 0 {
            let has_fence = |node: &usize| nodes::has_fence(&state.nodes[*node]);
            actions.extend((0..self.frail).filter(has_fence).map(Action::LoseFence));
        }
        if left.steals > 0 {
            let is_held = |node: &usize| nodes::lock(&state.nodes[*node]).is_some();
            let nodes = (0..state.nodes.len()).filter(is_held);
            actions.extend(nodes.map(Action::Steal));
        }
        if state.slept().is_some() && state.next_moment(self.horizon).is_some() {
            actions.push(Action::Pass);
        }
    }

    fn moves_on_line(&self, state: &State, client: usize, node: usize, actions: &mut Vec<Action>) {
        let line = state.line(client, node);
        if line.has_request() && !line.is_slow() {
            actions.push(Action::Exchange(client, node));
        }
        if line.has_request() && (line.is_slow() || state.left.delays > 0) {
            actions.push(Action::Arrive(client, node));
        }
        if line.has_reply() {
            actions.push(Action::Hear(client, node));
        }
        if state.left.cuts > 0 && node < self.frail && (line.has_request() || line.has_reply()) {
            actions.push(Action::Cut(client, node));
        }
    }
}

impl State {
    pub(crate) fn act(&mut self, world: &World, action: Action) {
        let now = self.now;
        match action {
            Action::Start(client) => {
                let floor = self.fences.last().copied().unwrap_or_default();
                self.meet(world, client, &Occasion::Start(floor));
            }
            Action::Leave(client) => self.meet(world, client, &Occasion::Leave),
            Action::Stop(client) => {
                self.left.stops -= 1;
                self.tell(world, client, Event::Stop);
            }
            Action::Notify(client, notice) => {
                self.left.notices -= 1;
                self.tell(world, client, Event::Notified(notice));
            }
            Action::Wake(client) => self.tell(world, client, Event::Woke),
            Action::Exchange(client, node) => {
                self.arrive(client, node);
                self.hear(world, client, node);
            }
            Action::Arrive(client, node) => {
                if !self.line(client, node).is_slow() {
                    spend(&mut self.left.delays, 1);
                }
                self.arrive(client, node);
                self.line_mut(client, node).change(|line| {
                    if line.is_prompt() {
                        line.slow_down();
                    }
                });
            }
            Action::Hear(client, node) => self.hear(world, client, node),
            Action::Cut(client, node) => self.cut(world, client, node),
            Action::Stray(number) => {
                let (node, request) = self.strays.remove(number);
                // Nobody hears the reply.
                let executed = memo::executed(&self.nodes[node], &request);
                self.nodes[node] = executed.0.clone();
            }
            Action::Gain(node) => {
                self.left.gains -= 1;
                self.nodes[node].change(|node| node.advance(DRIFT));
            }
            Action::Restart(node) => {
                self.left.restarts -= 1;
                let time = self.nodes[node].now().as_millis();
                self.nodes[node] = Shared::new(nodes::starting(time));
            }
            Action::LoseFence(node) => {
                self.left.lost_fences -= 1;
                self.nodes[node].change(nodes::lose_fence);
                // Clocks that agree are to tell the time of this moment from that of the last grant.
                self.pass(now + 1);
            }
            Action::Steal(node) => {
                self.left.steals -= 1;
                if let Some((token, fence)) = self.nodes[node].change(nodes::steal) {
                    self.stolen = Some(token);
                    self.fence(fence, 0);
                }
            }
            Action::Pass => {
                if let Some(moment) = self.next_moment(world.horizon) {
                    self.left = self.slept().unwrap_or(self.left);
                    for line in self.lines.iter_mut().filter(|line| line.is_prompt()) {
                        line.change(Line::slow_down);
                    }
                    self.pass(moment);
                }
            }
        }
    }

    /// The tokens of the leases that are believed to be valid. Where a lock was stolen, its holder finds that out when it asks.
    pub(crate) fn valid(&self) -> impl Iterator<Item = &Token> {
        let tokens = self.clients.iter();
        let tokens = tokens.filter_map(|client| client.holds(self.now));
        tokens.filter(|token| self.stolen.as_deref() != Some(token.as_bytes()))
    }

    /// Whether requests of a client are on their way to a node.
    pub(crate) fn is_asking(&self, client: usize, node: usize) -> bool {
        self.line(client, node).has_request()
    }

    /// What may yet go wrong if time passes now; nothing if more would go wrong than may.
    fn slept(&self) -> Option<Faults> {
        let mut left = self.left;
        let prompt = self.lines.iter().filter(|line| line.is_prompt()).count();
        let is_due = |client: &&Shared<Client>| client.until().is_some_and(|at| at <= self.now);
        let due = self.clients.iter().filter(is_due).count();
        (spend(&mut left.delays, prompt) && spend(&mut left.oversleeps, due)).then_some(left)
    }

    /// The next moment at which something may happen that could not happen before.
    fn next_moment(&self, horizon: u64) -> Option<u64> {
        let waits = self.clients.iter().filter_map(|client| client.until());
        let ends = self.nodes.iter().filter_map(|node| nodes::lock(node));
        // A key is alive while nothing is left of it, and gone after that.
        let ends = ends.map(|(_, left)| self.now + left + 1);
        let moments = waits.chain(ends);
        let moments = moments.filter(|moment| *moment > self.now && *moment <= horizon);
        moments.min()
    }

    /// The next request of a client is executed.
    fn arrive(&mut self, client: usize, node: usize) {
        let Some(request) = self.line_mut(client, node).change(Line::arrive) else {
            return;
        };
        let executed = memo::executed(&self.nodes[node], &request);
        let (after, reply) = &*executed;
        self.nodes[node] = after.clone();
        if request.operation == self.clients[client].operation() {
            let reply = reply.clone();
            self.line_mut(client, node)
                .change(|line| line.answer(reply));
        }
    }

    /// The next reply is told to its client.
    fn hear(&mut self, world: &World, client: usize, node: usize) {
        if !self.line(client, node).has_reply() {
            return;
        }
        if let Some(reply) = self.line_mut(client, node).change(Line::hear) {
            self.meet(world, client, &Occasion::Heard(reply));
        }
    }

    fn cut(&mut self, world: &World, client: usize, node: usize) {
        self.left.cuts -= 1;
        let (strays, unheard) = self.line_mut(client, node).change(Line::cut);
        let strays = strays.into_iter().map(|request| (node, request));
        self.strays.extend(strays);
        for (operation, call) in unheard {
            if operation == self.clients[client].operation() {
                let outcome = Err(Undelivered::MaybeSent("cut".into()));
                self.tell(world, client, Event::Replied { call, outcome });
            }
        }
    }

    fn tell(&mut self, world: &World, client: usize, event: Event) {
        self.meet(world, client, &Occasion::Told(event));
    }

    /// Lets something happen to a client, and takes in what it does.
    fn meet(&mut self, world: &World, number: usize, occasion: &Occasion) {
        let before = self.clients[number].operation();
        let met = memo::met(world, &self.clients[number], occasion, self.now);
        let (client, effects) = &*met;
        self.clients[number] = client.clone();
        let operation = self.clients[number].operation();
        if operation != before {
            for node in 0..self.nodes.len() {
                if self.line(number, node).has_reply() {
                    let line = self.line_mut(number, node);
                    line.change(|line| line.forget_before(operation));
                }
            }
        }
        for request in &effects.requests {
            let node = usize::from(request.call.node.0);
            self.line_mut(number, node)
                .change(|line| line.send(request.clone()));
        }
        if let Some(granted) = &effects.granted {
            self.fence(granted.fence, granted.floor);
        }
    }

    /// Takes in a fence, and the highest one that was known before it was asked for.
    fn fence(&mut self, fence: u64, floor: u64) {
        let is_new = self.fences.change(|fences| fences.insert(fence));
        self.is_out_of_order |= fence <= floor || !is_new;
    }

    fn pass(&mut self, until: u64) {
        for node in &mut self.nodes {
            *node = memo::advanced(node, until - self.now);
        }
        self.now = until;
    }

    fn line(&self, client: usize, node: usize) -> &Line {
        &self.lines[client * self.nodes.len() + node]
    }

    fn line_mut(&mut self, client: usize, node: usize) -> &mut Shared<Line> {
        let nodes = self.nodes.len();
        &mut self.lines[client * nodes + node]
    }
}

/// Takes so much from what is left; whether there was enough.
fn spend(left: &mut u8, count: usize) -> bool {
    match usize::from(*left).checked_sub(count) {
        Some(rest) => {
            *left = u8::try_from(rest).unwrap_or_default();
            true
        }
        None => false,
    }
}
