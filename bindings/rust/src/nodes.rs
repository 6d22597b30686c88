//! How an operation's calls travel to several servers at once.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tallylock_core::step::{Call, Outcome, Undelivered};
use tallylock_core::time::{Instant, Ttl};
use tokio::runtime::Handle;

use crate::clock;
use crate::memory::Caller;
use crate::site::Node;
use crate::way::ServerWay;

/// The ways of one operation to each of its nodes.
pub(crate) struct Nodes {
    ways: Vec<NodeWay>,
    timeout: Ttl,
    runtime: Handle,
}

enum NodeWay {
    Server(Arc<ServerWay>),
    Memory(Caller),
}

impl Nodes {
    pub(crate) fn new(nodes: &[Node], deadline: Instant, timeout: Ttl, runtime: &Handle) -> Self {
        let way = |node: &Node| match node {
            Node::Server(connections) => {
                let way = ServerWay::new(connections, deadline, timeout).one_of_several();
                NodeWay::Server(Arc::new(way))
            }
            Node::Memory(server) => NodeWay::Memory(Caller::new(server)),
        };
        Self {
            ways: nodes.iter().map(way).collect(),
            timeout,
            runtime: runtime.clone(),
        }
    }

    pub(crate) async fn send(&self, call: Call) -> Outcome {
        match &self.ways[usize::from(call.node.0)] {
            NodeWay::Memory(caller) => caller.execute(&call),
            NodeWay::Server(way) => self.send_to(Arc::clone(way), call).await,
        }
    }

    /// Sends a call, whose answer is waited for even when the operation has ended without it: a node that is slower than the
    /// others is no node that is silent, and what follows on the same connection stays behind it.
    async fn send_to(&self, way: Arc<ServerWay>, call: Call) -> Outcome {
        let timeout = Duration::from_millis(self.timeout.as_millis());
        let mut sending: Pin<Box<dyn Future<Output = Outcome> + Send>> = {
            let _entered = self.runtime.enter();
            let answer = tokio::time::timeout(timeout, async move { way.send(call).await });
            Box::pin(async {
                answer
                    .await
                    .unwrap_or_else(|_| Err(Undelivered::MaybeSent("no answer in time".into())))
            })
        };
        // Polled once here, it has its place before the calls that are sent after it.
        let at_once = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;
        match at_once {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => self.runtime.spawn(sending).await.unwrap_or_else(|_| {
                let why = "the client's runtime was shut down";
                Err(Undelivered::MaybeSent(why.into()))
            }),
        }
    }

    /// The time on the clock of the first.
    pub(crate) fn now(&self) -> Instant {
        match self.ways.first() {
            Some(NodeWay::Memory(caller)) => caller.now(),
            _ => clock::now(),
        }
    }

    /// Waits on the machine's clock, or as long on each of the virtual ones.
    pub(crate) async fn sleep_until(&self, until: Instant) {
        let left = until.since(self.now());
        let memories = self.ways.iter().filter_map(|way| match way {
            NodeWay::Memory(caller) => Some(caller.sleep_until(caller.now().plus(left))),
            NodeWay::Server(_) => None,
        });
        let mut memories: Vec<_> = memories.collect();
        if let Some(NodeWay::Server(way)) = self.ways.first() {
            return way.sleep_until(until).await;
        }
        poll_fn(|context| {
            // All of them are polled: a clock jumps only where everybody waits.
            memories.retain_mut(|sleep| pin!(sleep).poll(context).is_pending());
            if memories.is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};
    use std::thread;

    use tokio::runtime::Builder;

    use super::*;
    use crate::listener::{Listener, call, timeout};
    use crate::opening::Asked;

    #[test]
    fn a_call_that_nobody_goes_on_with_has_its_place_all_the_same() {
        let running = Builder::new_multi_thread().enable_all().build().unwrap();
        // Has no time for the calls that are left to it.
        let busy = Builder::new_current_thread().enable_all().build().unwrap();
        let listener = Listener::bind();
        let connections = listener.connections(running.handle());
        let later = clock::now().plus(60_000);
        let node = Node::Server(Arc::clone(&connections));
        let nodes = Nodes::new(&[node], later, timeout(), busy.handle());
        let ask = |number| {
            let mut sending = pin!(nodes.send(call(number)));
            let mut context = Context::from_waker(Waker::noop());
            assert!(sending.as_mut().poll(&mut context).is_pending());
        };
        let opening = connections.opening();
        ask(0);
        let Ok(Asked::Queued(queued)) = opening.ask(call(1), || later) else {
            panic!("it is not open yet")
        };
        let accepted = listener.accept();
        let served = thread::spawn(move || accepted.serve(3));
        let Some(Ok(connection)) = running.block_on(opening.wait()) else {
            panic!("it answered")
        };
        ask(2);
        let last = connection.begin(call(3));
        assert_eq!(served.join().unwrap(), [0, 1, 2, 3]);
        drop((queued, last));
    }
}
