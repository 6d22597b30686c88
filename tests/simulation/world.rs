//! Servers, what is on its way to and from them, and time, which passes from one happening to the next.

use std::collections::BTreeMap;

use tallylock_core::memory::Memory;
use tallylock_core::step::{Call, Notice, Outcome};

use crate::network::{Connection, Fate, Request, maybe_sent, not_sent};
use crate::plan::{Kept, Plan};
use crate::random::Random;
use crate::trace::Trace;
use crate::watch::Watch;

/// All that the clients share. The last of the servers is the one that holders write to.
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) plan: Plan,
    pub(crate) random: Random,
    pub(crate) trace: Trace,
    pub(crate) watch: Watch,
    pub(crate) servers: Vec<Server>,
    /// Until when each client does nothing, whatever happens.
    paused_until: Vec<u64>,
    connections: BTreeMap<(usize, usize), Connection>,
    /// What was sent and not answered, and what was answered and not yet heard, by ticket.
    asked: BTreeMap<u64, Asked>,
    answered: BTreeMap<u64, Outcome>,
    /// What each client is told of the lock; it may be of no use to it any more.
    notices: Vec<Option<Notice>>,
    coming: BTreeMap<(u64, u64), Happening>,
    number: u64,
}

/// After so many TTLs nothing is on its way any more, and what came last is gone: a request takes two, and its lock one.
const LATEST: u64 = 4;

/// A node, or the server that holders write to.
pub(crate) struct Server {
    pub(crate) memory: Memory,
    name: String,
    /// How many millionths faster than true its clock runs, and what it has not yet been ahead by.
    gains: u64,
    rest: u64,
    is_away: bool,
}

struct Asked {
    client: usize,
    server: usize,
    connection: u32,
}

enum Happening {
    Arrives(Request),
    Heard(u64, Outcome),
    Cut {
        client: usize,
        server: usize,
        connection: u32,
    },
    Restarts(usize),
    IsBack(usize),
    /// A client is told that the lock may be free.
    Notified(usize, Notice),
    /// Somebody wants to look at the time.
    Wake,
}

impl World {
    pub(crate) fn new(plan: Plan, mut random: Random) -> Self {
        let names = (0..plan.nodes).map(|node| format!("n{node}"));
        let servers = names.chain(["d".to_owned()]);
        let servers = servers
            .map(|name| Server::new(name, plan.clocks_agree, &mut random))
            .collect();
        let mut world = Self {
            now: 0,
            random,
            trace: Trace::default(),
            watch: Watch::default(),
            servers,
            paused_until: vec![0; plan.clients],
            connections: BTreeMap::new(),
            asked: BTreeMap::new(),
            answered: BTreeMap::new(),
            notices: vec![None; plan.clients],
            coming: BTreeMap::new(),
            number: 0,
            plan,
        };
        world.restart_later();
        world
    }

    /// Sends a request; its outcome is found under the ticket that this gives.
    pub(crate) fn send(&mut self, client: usize, server: usize, call: Call) -> u64 {
        let (now, ticket) = (self.now, self.ticket());
        let name = self.servers[server].name.clone();
        self.trace.sent(now, client, &name, &call);
        let connection = self.connections.entry((client, server)).or_default();
        let asked = Asked {
            client,
            server,
            connection: connection.number,
        };
        self.asked.insert(ticket, asked);
        if self.servers[server].is_away {
            self.put(now, Happening::Heard(ticket, not_sent()));
            return ticket;
        }
        let (trouble, ttl) = (self.plan.trouble, self.plan.ttl);
        let fate = Fate::drawn(&mut self.random, trouble, ttl, now);
        let connection = self.connections.entry((client, server)).or_default();
        let number = connection.number;
        let arrives_at = fate.arrives_at.map(|at| connection.arrival(at));
        if let Some(at) = arrives_at {
            let request = Request {
                client,
                server,
                call,
                ticket,
                connection: number,
                reply_takes: fate.reply_takes,
            };
            self.put(at, Happening::Arrives(request));
        }
        if let Some(at) = fate.cut_at {
            let cut = Happening::Cut {
                client,
                server,
                connection: number,
            };
            self.put(at, cut);
        }
        ticket
    }

    /// What became of a request, once its client may know.
    pub(crate) fn outcome(&mut self, ticket: u64) -> Option<Outcome> {
        self.answered.remove(&ticket)
    }

    /// What a client is told of the lock, if anything.
    pub(crate) fn notice(&mut self, client: usize) -> Option<Notice> {
        let notice = self.notices[client].take();
        if let Some(notice) = notice {
            let what = format!("is told of the lock: {notice:?}");
            self.trace.does(self.now, client, &what);
        }
        notice
    }

    /// Lets time not pass beyond this moment without a look at it.
    pub(crate) fn wake_at(&mut self, at: u64) {
        self.put(at.max(self.now), Happening::Wake);
    }

    /// Whether a client does nothing now. Now and then one begins to.
    pub(crate) fn is_paused(&mut self, client: usize) -> bool {
        if self.now < self.paused_until[client] {
            return true;
        }
        if !self.random.happens(self.plan.pauses) {
            return false;
        }
        let pause = self.random.between(1, 2 * self.plan.ttl);
        let until = self.now + pause;
        self.trace
            .does(self.now, client, &format!("is paused for {pause} ms"));
        self.watch.paused(client, until);
        self.paused_until[client] = until;
        self.wake_at(until);
        true
    }

    /// Lets the next thing happen; false if there is none.
    pub(crate) fn happen(&mut self) -> bool {
        let Some(((at, _), happening)) = self.coming.pop_first() else {
            return false;
        };
        self.pass(at);
        match happening {
            Happening::Arrives(request) => self.arrive(request),
            Happening::Heard(ticket, outcome) => self.hear(ticket, outcome),
            Happening::Cut {
                client,
                server,
                connection,
            } => self.cut(client, server, connection),
            Happening::Restarts(server) => self.restart(server),
            Happening::IsBack(server) => {
                self.servers[server].is_away = false;
                let name = self.servers[server].name.clone();
                self.trace.befalls(at, &name, "is back");
                self.restart_later();
            }
            Happening::Notified(client, notice) => self.notices[client] = Some(notice),
            Happening::Wake => {}
        }
        true
    }

    /// Lets all arrive that is on its way when the clients have ended, and what is there run out.
    pub(crate) fn run_out(&mut self) {
        let end = self.now + LATEST * self.plan.ttl;
        while self.now < end && self.happen() {}
        self.pass(end.max(self.now));
        self.watch.ended(&self.plan, &self.servers);
    }

    /// Lets time pass to this moment, on every clock.
    fn pass(&mut self, at: u64) {
        let millis = at - self.now;
        if millis > 0 {
            for server in &mut self.servers {
                server.pass(millis);
            }
        }
        self.now = at;
        self.watch.look(&self.plan, &self.servers, at);
    }

    fn arrive(&mut self, request: Request) {
        let Request {
            client,
            server: number,
            call,
            ticket,
            connection,
            reply_takes,
        } = request;
        let server = &mut self.servers[number];
        if server.is_away {
            return;
        }
        let outcome = server.memory.execute(&call);
        let was_published = !server.memory.published().is_empty();
        let name = server.name.clone();
        self.trace
            .executed(self.now, client, &name, &call, &outcome);
        self.watch
            .executed(&self.plan, &self.servers, number, self.now);
        self.tell_waiters(was_published);
        let line = self.connections.entry((client, number)).or_default();
        if line.number != connection {
            return;
        }
        if let Some(takes) = reply_takes {
            let at = line.hearing(self.now + takes);
            self.put(at, Happening::Heard(ticket, outcome));
        }
    }

    /// Tells clients that the lock may be free: mostly when it is, seldom for no reason; some late, and some not at all.
    fn tell_waiters(&mut self, was_published: bool) {
        for client in 0..self.notices.len() {
            if self.random.happens(if was_published { 800 } else { 5 }) {
                let is_late = self.random.happens(self.plan.trouble);
                let takes = self
                    .random
                    .between(0, if is_late { self.plan.ttl } else { 2 });
                let notice = self
                    .random
                    .one_of(&[Notice::Heard, Notice::Heard, Notice::Deaf]);
                self.put(self.now + takes, Happening::Notified(client, notice));
            }
        }
    }

    fn hear(&mut self, ticket: u64, outcome: Outcome) {
        let Some(asked) = self.asked.remove(&ticket) else {
            return;
        };
        let name = self.servers[asked.server].name.clone();
        self.trace.heard(self.now, asked.client, &name, &outcome);
        self.answered.insert(ticket, outcome);
    }

    /// A connection is lost: what was not answered never will be, but may arrive.
    fn cut(&mut self, client: usize, server: usize, connection: u32) {
        let line = self.connections.entry((client, server)).or_default();
        if line.number != connection {
            return;
        }
        line.replace();
        let asked = self.asked.iter().filter(|(_, asked)| {
            (asked.client, asked.server, asked.connection) == (client, server, connection)
        });
        let tickets: Vec<u64> = asked.map(|(ticket, _)| *ticket).collect();
        for ticket in tickets {
            self.hear(ticket, maybe_sent());
        }
    }

    fn restart(&mut self, number: usize) {
        let (kept, ttl) = (self.plan.kept, self.plan.ttl);
        let server = &mut self.servers[number];
        server.is_away = true;
        if kept == Kept::Keys {
            server.memory.forget_scripts();
        } else {
            let keys: Vec<Vec<u8>> = server.memory.keys().map(|(key, ..)| key.to_vec()).collect();
            for key in keys {
                server.memory.remove(&key);
            }
        }
        let name = server.name.clone();
        self.trace.befalls(self.now, &name, "restarts");
        let connections: Vec<_> = self.connections.iter().collect();
        let connections = connections
            .into_iter()
            .filter(|((_, server), _)| *server == number);
        let connections: Vec<_> = connections
            .map(|((client, _), line)| (*client, line.number))
            .collect();
        for (client, connection) in connections {
            self.cut(client, number, connection);
        }
        let away = self.random.between(1, ttl / 4);
        let waits = if kept == Kept::NothingButItWaits {
            ttl
        } else {
            0
        };
        let away = away + waits;
        self.put(self.now + away, Happening::IsBack(number));
    }

    fn restart_later(&mut self) {
        if let Some((least, most)) = self.plan.restarts {
            let at = self.now + self.random.between(least, most);
            let last = self.plan.nodes as u64 - 1;
            let node = usize::try_from(self.random.between(0, last)).expect("few nodes");
            self.put(at, Happening::Restarts(node));
        }
    }

    fn put(&mut self, at: u64, happening: Happening) {
        let number = self.ticket();
        self.coming.insert((at, number), happening);
    }

    fn ticket(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}

impl Server {
    fn new(name: String, clocks_agree: bool, random: &mut Random) -> Self {
        let (ahead, gains) = if clocks_agree {
            (0, 0)
        } else {
            (5_000, 10_000)
        };
        let mut memory = Memory::default();
        memory.advance(random.between(0, ahead));
        Self {
            memory,
            name,
            gains: random.between(0, gains),
            rest: 0,
            is_away: false,
        }
    }

    fn pass(&mut self, millis: u64) {
        self.rest += millis * self.gains;
        let ahead = self.rest / 1_000_000;
        self.rest %= 1_000_000;
        self.memory.advance(millis + ahead);
    }
}
