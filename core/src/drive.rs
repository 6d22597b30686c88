//! The loop that connects an operation to a transport and a clock; the only place in core that waits.

use core::future::{Future, poll_fn};
use core::ops::ControlFlow;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use std::collections::VecDeque;

use crate::step::{Call, CallId, Event, Next, Operation, Outcome, Step, Undelivered};
use crate::time::Instant;

/// What sends calls to servers, for [`drive`].
pub trait Transport {
    /// Sends a call and gives its outcome. Calls whose futures are first polled in an order go out in that order.
    fn send(&self, call: Call) -> impl Future<Output = Outcome>;
}

/// What tells and awaits the time, for [`drive`].
pub trait Clock {
    /// The time on a monotonic clock.
    fn now(&self) -> Instant;

    /// Waits until a moment; a little earlier is harmless.
    fn sleep_until(&self, until: Instant) -> impl Future<Output = ()>;
}

/// For [`drive`]: says nothing to an operation that waits for nothing but answers and times.
pub fn nothing_to_tell(_: &mut Context<'_>) -> Poll<Event> {
    Poll::Pending
}

/// Drives an operation to its end, and shows it to `observe` after every step.
///
/// `notified` is polled for what else there is to tell it ([`nothing_to_tell`]). When `cancelled` ends, the operation is told
/// to stop, and is still driven to its end.
pub async fn drive<O: Operation>(
    mut operation: O,
    first: Step<O::Output>,
    transport: impl Transport,
    clock: impl Clock,
    cancelled: impl Future<Output = ()>,
    mut notified: impl FnMut(&mut Context<'_>) -> Poll<Event>,
    mut observe: impl FnMut(&O),
) -> O::Output {
    let mut step = first;
    let mut calls: Vec<(CallId, Pin<Box<_>>)> = Vec::new();
    let mut answered = VecDeque::new();
    let mut cancelled = pin!(cancelled);
    let mut stopping = false;
    loop {
        for call in step.calls {
            calls.push((call.id, Box::pin(transport.send(call))));
        }
        observe(&operation);
        let until = match step.next {
            Next::Done(output) => return output,
            Next::WaitUntil(until) => until,
        };
        let mut timer = pin!(clock.sleep_until(until));
        let event = poll_fn(|context| {
            // Calls first: a reply that is there counts, however late the timer is. All are polled, so that they go
            // out in the order in which the operation gave them.
            calls.retain_mut(|(call, future)| match future.as_mut().poll(context) {
                Poll::Ready(outcome) => {
                    answered.push_back((*call, outcome));
                    false
                }
                Poll::Pending => true,
            });
            if let Some((call, outcome)) = answered.pop_front() {
                return Poll::Ready(Event::Replied { call, outcome });
            }
            if !stopping && cancelled.as_mut().poll(context).is_ready() {
                stopping = true;
                return Poll::Ready(Event::Stop);
            }
            if let Poll::Ready(event) = notified(context) {
                return Poll::Ready(event);
            }
            timer.as_mut().poll(context).map(|()| Event::Woke)
        })
        .await;
        step = operation.handle(clock.now(), event);
    }
}

/// What exchanges calls with a server on the calling thread, for [`drive_blocking`].
pub trait BlockingTransport {
    /// Writes a call.
    fn send(&mut self, call: Call) -> Result<(), Undelivered>;

    /// Waits for the outcome of a call that was sent, at the longest until this moment.
    fn receive(&mut self, until: Instant) -> Option<(CallId, Outcome)>;

    /// Whether a call was sent whose outcome was not received yet.
    fn is_expecting(&self) -> bool;
}

/// What tells and awaits the time on the calling thread, for [`drive_blocking`].
pub trait BlockingClock {
    /// The time on a monotonic clock.
    fn now(&self) -> Instant;

    /// Waits until a moment, or until there is something to tell the operation, and gives that: [`Event::Woke`] if it is
    /// only the time. A little earlier is harmless.
    fn wait_until(&self, until: Instant) -> Event;
}

/// Drives an operation on the calling thread until it ends or `observe`, shown it after every step, breaks off.
///
/// Where `observe` breaks off, the operation is given back with the moment until which it waits, to be driven further
/// elsewhere: what it has sent is on its way.
pub fn drive_blocking<O: Operation>(
    mut operation: O,
    mut step: Step<O::Output>,
    transport: &mut impl BlockingTransport,
    clock: &impl BlockingClock,
    mut observe: impl FnMut(&O) -> ControlFlow<()>,
) -> Result<O::Output, (O, Instant)> {
    let mut refused = VecDeque::new();
    loop {
        for call in step.calls {
            let id = call.id;
            if let Err(undelivered) = transport.send(call) {
                refused.push_back((id, Err(undelivered)));
            }
        }
        let until = match step.next {
            Next::Done(output) => return Ok(output),
            Next::WaitUntil(until) => until,
        };
        if observe(&operation).is_break() {
            return Err((operation, until));
        }
        let event = match refused.pop_front() {
            Some((call, outcome)) => Event::Replied { call, outcome },
            None if transport.is_expecting() => match transport.receive(until) {
                Some((call, outcome)) => Event::Replied { call, outcome },
                None => Event::Woke,
            },
            None => clock.wait_until(until),
        };
        step = operation.handle(clock.now(), event);
    }
}
