//! Several independent servers, of which more than half decide: who is connected to, and whose answers are waited for.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use js_sys::Promise;
use tallylock_core::drive::Clock;
use tallylock_core::error::{Code, Error};
use tallylock_core::settings::Nodes;
use tallylock_core::step::{Outcome, Undelivered};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::{Client, Shared, settings};
use crate::duration;
use crate::executor::{promise, spawn};
use crate::host::Host;
use crate::link::Link;
use crate::slots::Number;

#[wasm_bindgen]
impl Client {
    /// A client of so many servers, for locks alone; `invalid_argument` unless they are an odd number from 3 to 99, and for times
    /// or a label that cannot be.
    #[wasm_bindgen(js_name = ofNodes)]
    pub fn of_nodes(
        host: Host,
        nodes: usize,
        timeout_ms: Option<f64>,
        node_timeout_ms: Option<f64>,
        rejoin: bool,
        label: Option<String>,
    ) -> Result<Client, JsValue> {
        let made = settings(timeout_ms, label).and_then(|mut settings| {
            settings.nodes = Nodes::new(nodes)?;
            settings.node_timeout = node_timeout_ms
                .map(|ms| duration::least_one("nodeTimeoutMs", ms))
                .transpose()?;
            settings.rejoin = rejoin;
            Ok(settings)
        });
        let settings = made.map_err(|error| host.failure(&error))?;
        Ok(Self::over(Link::new(host), settings))
    }

    /// Resolves once more than half of the servers are connected. Rejects with `unavailable` if too few can be reached in time, and
    /// before that, of the first server that refuses us as such, with its refusal: it would never be there.
    #[wasm_bindgen(js_name = openNodes)]
    pub fn open_nodes(&self) -> Promise {
        let shared = Rc::clone(self.shared());
        let opening = Box::pin(async move {
            let _turn = shared.enter(None)?;
            match await_quorum(&shared).await {
                Ok(()) => Ok(JsValue::UNDEFINED),
                Err(error) => Err(shared.link.failure(&error)),
            }
        });
        promise(&self.shared().link.host, opening)
    }
}

/// Whether a client is one of several servers.
pub(crate) fn are_several(shared: &Shared) -> bool {
    shared.settings.nodes != Nodes::ONE
}

/// Waits for the answer to a call, also when its operation has ended without it, for as long as a call may take: a server
/// that is slower than the others is no server that is silent, and what follows on its connection stays behind it.
pub(crate) async fn answer(
    shared: &Rc<Shared>,
    call: Number,
    node: u16,
    operation: u32,
) -> Outcome {
    let told = shared.link.calls.open();
    let waits = Rc::clone(shared);
    spawn(Box::pin(async move {
        let _turn = waits.begin();
        let link = &waits.link;
        let answered = link.calls.wait(call, |_| link.host.forget(node, operation));
        let deadline = waits.now().plus(waits.timeout());
        let outcome = link.within(deadline, answered).await;
        let outcome =
            outcome.unwrap_or_else(|| Err(Undelivered::MaybeSent("no answer in time".into())));
        link.calls.put(told, outcome);
        Ok(JsValue::UNDEFINED)
    }));
    shared.link.calls.wait(told, |_| ()).await
}

async fn await_quorum(shared: &Shared) -> Result<(), Error> {
    let link = &shared.link;
    let all = shared.settings.nodes.count();
    let mut opening: Vec<_> = (0..all).map(|node| Box::pin(link.open(node))).collect();
    let mut timer = pin!(link.sleep_until(shared.now().plus(shared.timeout())));
    let (mut missing, mut unreachable) = (all / 2 + 1, Vec::new());
    poll_fn(|context| {
        let mut refusal = None;
        opening.retain_mut(|opening| match opening.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(opened) => {
                match opened {
                    Ok(_) => missing = missing.saturating_sub(1),
                    Err(Undelivered::Refused(error)) => refusal = Some(error),
                    Err(Undelivered::NotSent(why) | Undelivered::MaybeSent(why)) => {
                        unreachable.push(why);
                    }
                }
                false
            }
        });
        if missing == 0 {
            return Poll::Ready(Ok(()));
        }
        if let Some(refusal) = refusal {
            return Poll::Ready(Err(refusal));
        }
        if timer.as_mut().poll(context).is_ready() {
            let late = "no connection by the deadline";
            unreachable.extend(opening.drain(..).map(|_| late.into()));
        }
        if opening.is_empty() {
            let (count, why) = (unreachable.len(), unreachable.join("; "));
            let detail = format!("unreachable {count} of {all} nodes: {why}");
            return Poll::Ready(Err(Error::new(Code::Unavailable, detail)));
        }
        Poll::Pending
    })
    .await
}
