//! Any operation that a client runs, as one type.
//!
//! The loop that drives an operation is the largest piece of code in the wasm file: made for one type, it is there once.

use js_sys::{Array, Uint8Array};
use tallylock_core::claim::{Abort, Claimed, Commit, Open};
use tallylock_core::counter::{Add, AddMany, AddOnce, Added, Drain, Drained, Finish, Read};
use tallylock_core::error::Error;
use tallylock_core::lock::{Acquire, Adopt, Extend, Grant, Release, Verify};
use tallylock_core::request::{Request, Single};
use tallylock_core::round::Effect;
use tallylock_core::scan::{Page, Scan};
use tallylock_core::script::Invocation;
use tallylock_core::step::{Event, Next, Operation, Reply, Step};
use tallylock_core::time::Instant;
use tallylock_core::value::{
    CompareAndSet, Get, GuardedDelete, GuardedSet, Offer, Offered, ReplaceIfPresent, Touch,
};
use wasm_bindgen::JsValue;

use crate::held::Turn;

/// What a task ends with.
pub(crate) enum Answer {
    Nothing,
    Integer(Option<i64>),
    Flag(bool),
    Bytes(Option<Vec<u8>>),
    Drained(Option<Drained>),
    Added(Added),
    Claimed(Option<Claimed>),
    Batch(Vec<Result<Added, Error>>),
    Page(Page),
    Offered(Offered),
    Granted(Grant),
    ValidUntil(Instant),
}

macro_rules! verbs {
    ($($name:ident($request:ty) => $answer:expr;)*) => {
        /// Any request of one script.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub(crate) enum Verb {
            $($name($request),)*
        }

        impl Request for Verb {
            type Output = Answer;

            fn key(&self) -> &[u8] {
                match self {
                    $(Self::$name(request) => Request::key(request),)*
                }
            }

            fn effect(&self) -> Effect {
                match self {
                    $(Self::$name(request) => request.effect(),)*
                }
            }

            fn invocation(&self) -> Invocation {
                match self {
                    $(Self::$name(request) => request.invocation(),)*
                }
            }

            fn understand(&self, reply: Reply) -> Result<Answer, Error> {
                match self {
                    $(Self::$name(request) => request.understand(reply).map($answer),)*
                }
            }
        }

        $(impl From<$request> for Verb {
            fn from(request: $request) -> Self {
                Self::$name(request)
            }
        })*
    };
}

verbs! {
    Add(Add) => |total| Answer::Integer(Some(total));
    AddOnce(AddOnce) => Answer::Added;
    Read(Read) => Answer::Integer;
    Drain(Drain) => Answer::Drained;
    Finish(Finish) => Answer::Integer;
    Claim(Open) => Answer::Claimed;
    Commit(Commit) => |()| Answer::Nothing;
    Abort(Abort) => |amount| Answer::Integer(Some(amount));
    Get(Get) => Answer::Bytes;
    ReplaceIfPresent(ReplaceIfPresent) => Answer::Flag;
    Touch(Touch) => Answer::Flag;
    CompareAndSet(CompareAndSet) => Answer::Flag;
    GuardedSet(GuardedSet) => |()| Answer::Nothing;
    GuardedDelete(GuardedDelete) => Answer::Flag;
}

macro_rules! tasks {
    ($($name:ident($operation:ty) => $answer:expr;)*) => {
        /// An operation that is under way.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub(crate) enum Task {
            $($name($operation),)*
        }

        impl Operation for Task {
            type Output = Result<Answer, Error>;

            fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
                match self {
                    $(Self::$name(operation) => answered(operation.handle(now, event), $answer),)*
                }
            }

            fn met_refusal_of_scripts(&self) -> bool {
                match self {
                    $(Self::$name(operation) => operation.met_refusal_of_scripts(),)*
                }
            }
        }

        $(impl From<($operation, Step<<$operation as Operation>::Output>)> for StartedTask {
            fn from((operation, step): ($operation, Step<<$operation as Operation>::Output>)) -> Self {
                Self(Task::$name(operation), answered(step, $answer))
            }
        })*
    };
}

tasks! {
    Request(Single<Verb>) => |answer| answer;
    AddMany(AddMany) => |results| Ok(Answer::Batch(results));
    Scan(Scan) => |page| page.map(Answer::Page);
    Offer(Offer) => |offered| offered.map(Answer::Offered);
    Acquire(Acquire) => |grant| grant.map(Answer::Granted);
    Extend(Extend) => |until| until.map(Answer::ValidUntil);
    Release(Release) => |done| done.map(|()| Answer::Nothing);
    Verify(Verify) => |until| until.map(Answer::ValidUntil);
    Adopt(Adopt) => |grant| grant.map(Answer::Granted);
    Renew(Turn) => |done| done.map(|()| Answer::Nothing);
}

/// A task with its first step.
pub(crate) struct StartedTask(pub(crate) Task, pub(crate) Step<Result<Answer, Error>>);

impl Task {
    /// The acquire, if it is one.
    pub(crate) fn acquire(&self) -> Option<&Acquire> {
        match self {
            Self::Acquire(acquire) => Some(acquire),
            _ => None,
        }
    }
}

impl Answer {
    /// Whether a counter had lost its TTL, and was given one.
    pub(crate) fn is_healed(&self) -> bool {
        match self {
            Self::Drained(Some(drained)) => drained.healed,
            Self::Claimed(Some(claimed)) => claimed.healed,
            _ => false,
        }
    }

    /// What JavaScript gets; nothing of an answer that is for the caller in Rust.
    pub(crate) fn show(self) -> JsValue {
        match self {
            Self::Integer(number) => integer(number),
            Self::Drained(drained) => integer(drained.map(|drained| drained.amount)),
            Self::Flag(flag) => flag.into(),
            Self::Bytes(bytes) => bytes.map_or(JsValue::NULL, |bytes| {
                Uint8Array::from(bytes.as_slice()).into()
            }),
            Self::Added(added) => Array::of2(&added.total.into(), &added.applied.into()).into(),
            Self::Claimed(claimed) => claimed.map_or(JsValue::NULL, |claimed| {
                Array::of2(&claimed.amount.into(), &claimed.state.as_str().into()).into()
            }),
            Self::Nothing
            | Self::Batch(_)
            | Self::Page(_)
            | Self::Offered(_)
            | Self::Granted(_)
            | Self::ValidUntil(_) => JsValue::UNDEFINED,
        }
    }
}

fn integer(number: Option<i64>) -> JsValue {
    number.map_or(JsValue::NULL, JsValue::from)
}

fn answered<O>(
    step: Step<O>,
    answer: fn(O) -> Result<Answer, Error>,
) -> Step<Result<Answer, Error>> {
    let Step { calls, next } = step;
    let next = match next {
        Next::WaitUntil(until) => Next::WaitUntil(until),
        Next::Done(output) => Next::Done(answer(output)),
    };
    Step { calls, next }
}
