//! A whole billing, with the reply of each of its requests lost in turn and late copies of every claim: it balances.

#[allow(dead_code, reason = "each test uses a part of it")]
mod face;

use std::collections::BTreeMap;
use std::time::Duration;

use face::{Face, at_once};
use tallylock::{ClaimState, Client, Options, blocking};
use tallylock_core::claim::Open;
use tallylock_core::id::Id;
use tallylock_core::key::Key;
use tallylock_core::request::Request;
use tallylock_core::time::Ttl;
use tallylock_testkit::{Proxy, Server, on_each_server};

const TTL: Duration = Duration::from_secs(900);
const PATIENCE: Duration = Duration::from_secs(60);

on_each_server! {
    fn every_lost_reply_and_late_claim_balances_for_the_blocking_face(server: Server) {
        at_once(lose_each::<blocking::Client>(&server));
    }

    fn every_lost_reply_and_late_claim_balances_for_the_async_face(server: Server) {
        in_runtime(lose_each::<Client>(&server));
    }

    fn every_lost_reply_and_late_claim_balances_without_scripts(server: Server) {
        forbid_scripts(&server);
        at_once(lose_each::<blocking::Client>(&server));
    }
}

/// Loses the reply to the first request, then to the second, and so on until there are no more.
async fn lose_each<F: Face>(server: &Server) {
    let mut requests = 0;
    let mut deliverer = deliverer(server);
    loop {
        redis::cmd("FLUSHALL").exec(&mut deliverer).unwrap();
        let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
        // Only the loss is to go wrong, and not what a busy machine does.
        let patient = Options::new(&proxy.url()).unwrap().timeout(PATIENCE);
        let client = F::connect(patient.unwrap()).await;
        proxy.lose(requests + 1);
        Billing::new(&client, &mut deliverer).run().await;
        if proxy.stats().lost == 0 {
            break;
        }
        requests += 1;
    }
    // Both rounds over every session, each with two adds, a claim, and its end.
    assert!(requests >= 2 * 4 * SESSIONS.len() as u64, "{requests}");
}

const SESSIONS: [&str; 2] = ["session:1:pending", "{session:2}:pending"];

/// Two rounds of adding to each session and billing it by claims.
struct Billing<'a, F: Face> {
    client: &'a F,
    /// Another program's connection, on which copies come and the counters are looked at.
    deliverer: &'a mut redis::Connection,
    /// What was added, by session.
    used: BTreeMap<&'a str, i64>,
    /// Seconds by claim: an invoice is written once.
    invoices: BTreeMap<(&'a str, String), i64>,
    /// The claims that have taken something, as they were sent.
    copies: Vec<redis::Cmd>,
}

impl<'a, F: Face> Billing<'a, F> {
    fn new(client: &'a F, deliverer: &'a mut redis::Connection) -> Self {
        Self {
            client,
            deliverer,
            used: BTreeMap::new(),
            invoices: BTreeMap::new(),
            copies: Vec::new(),
        }
    }

    async fn run(mut self) {
        for round in 0..2 {
            for (place, session) in SESSIONS.into_iter().enumerate() {
                let counter = self.counter(session);
                for part in 0..2 {
                    let (seconds, event) = (30 + part, format!("event-{round}-{part}"));
                    F::add_once(&counter, seconds, event.as_bytes())
                        .await
                        .unwrap();
                    *self.used.entry(session).or_default() += seconds;
                    self.deliver_late_copies(session);
                }
                // One of the claims is given up: the next round bills what it had taken.
                let is_given_up = (round, place) == (0, 1);
                self.bill(session, &counter, &format!("run-{round}"), is_given_up)
                    .await;
            }
        }
        for (session, used) in &self.used {
            let of_session = |(owner, _): &&(&str, String)| owner == session;
            let billed: i64 = self
                .invoices
                .keys()
                .filter(of_session)
                .map(|invoice| self.invoices[invoice])
                .sum();
            assert_eq!(billed, *used, "{session}");
            let counter = self.counter(session);
            assert_eq!(F::read(&counter).await.unwrap(), Some(0), "{session}");
            assert_eq!(F::claims(&counter).await.unwrap(), [], "{session}");
        }
    }

    async fn bill(
        &mut self,
        session: &'a str,
        counter: &F::Counter,
        claim: &str,
        is_given_up: bool,
    ) {
        let claimed = F::claim(counter, claim.as_bytes()).await.unwrap().unwrap();
        assert_eq!(claimed.state, ClaimState::Open);
        self.copies.push(copy_of_claim(session, claim));
        self.deliver_late_copies(session);
        if is_given_up {
            F::abort(counter, claim.as_bytes()).await.unwrap();
        } else {
            let invoice = (session, claim.to_owned());
            assert_eq!(self.invoices.insert(invoice, claimed.amount), None);
            F::commit(counter, claim.as_bytes(), claimed.amount)
                .await
                .unwrap();
        }
        self.deliver_late_copies(session);
    }

    /// Every claim so far comes once more, as if the network had kept a copy: it takes nothing.
    fn deliver_late_copies(&mut self, session: &str) {
        let held = self.held(session);
        for copy in &self.copies {
            copy.exec(self.deliverer).unwrap();
        }
        assert_eq!(self.held(session), held);
    }

    fn held(&mut self, session: &str) -> i64 {
        redis::cmd("GET")
            .arg(session)
            .query(self.deliverer)
            .unwrap()
    }

    fn counter(&self, session: &str) -> F::Counter {
        self.client.counter(session.as_bytes(), TTL, false).unwrap()
    }
}

/// The request of a claim, as its script takes it.
fn copy_of_claim(session: &str, claim: &str) -> redis::Cmd {
    let open = Open {
        key: Key::new(session).unwrap(),
        id: Id::new(claim).unwrap(),
        ttl: Ttl::from_duration(TTL).unwrap(),
        fence: None,
    };
    let invocation = open.invocation();
    let mut command = redis::cmd("EVAL");
    command
        .arg(invocation.script.source())
        .arg(invocation.keys.len());
    for argument in invocation.keys.iter().chain(&invocation.arguments) {
        command.arg(argument.as_ref());
    }
    command
}

/// A connection of an account that may do everything, whatever others may.
fn deliverer(server: &Server) -> redis::Connection {
    let mut connection = server.connection();
    let set_up = ["SETUSER", "deliverer", "on", ">pass", "~*", "&*", "+@all"];
    redis::cmd("ACL")
        .arg(&set_up)
        .exec(&mut connection)
        .unwrap();
    redis::cmd("AUTH")
        .arg(&["deliverer", "pass"])
        .exec(&mut connection)
        .unwrap();
    connection
}

fn forbid_scripts(server: &Server) {
    redis::cmd("ACL")
        .arg(&["SETUSER", "default", "-@scripting"])
        .exec(&mut server.connection())
        .unwrap();
}

fn in_runtime(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}
