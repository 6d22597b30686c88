//! Any operation that a client runs, as one type.
//!
//! The loop that drives an operation is the largest piece of code in the wasm file: made for one type, it is there once.

use js_sys::Uint8Array;
use tallylock_core::counter::{Add, Drain, Drained, Finish, Read};
use tallylock_core::error::Error;
use tallylock_core::lock::{Acquire, Extend, Grant, Release};
use tallylock_core::request::{Request, Single};
use tallylock_core::settings::Settings;
use tallylock_core::step::{Event, Next, Operation, Step};
use tallylock_core::time::Instant;
use tallylock_core::token::Seed;
use tallylock_core::value::{CompareAndSet, Get, ReplaceIfPresent, Touch};
use wasm_bindgen::JsValue;

/// What a task ends with.
pub(crate) enum Answer {
    Nothing,
    Integer(Option<i64>),
    Flag(bool),
    Bytes(Option<Vec<u8>>),
    Drained(Option<Drained>),
    Granted(Grant),
    ValidUntil(Instant),
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
    Add(Single<Add>) => |total| Answer::Integer(Some(total));
    Read(Single<Read>) => Answer::Integer;
    Drain(Single<Drain>) => Answer::Drained;
    Finish(Single<Finish>) => Answer::Integer;
    Get(Single<Get>) => Answer::Bytes;
    ReplaceIfPresent(Single<ReplaceIfPresent>) => Answer::Flag;
    Touch(Single<Touch>) => Answer::Flag;
    CompareAndSet(Single<CompareAndSet>) => Answer::Flag;
    Acquire(Acquire) => Answer::Granted;
    Extend(Extend) => Answer::ValidUntil;
    Release(Release) => |()| Answer::Nothing;
}

/// A task with its first step.
pub(crate) struct StartedTask(pub(crate) Task, pub(crate) Step<Result<Answer, Error>>);

/// What starts a task: boxed, so that what runs it is compiled once.
pub(crate) type Start = Box<dyn FnOnce(&Settings, Seed, Instant) -> StartedTask>;

/// Starts a request of one script.
pub(crate) fn request<R: Request + 'static>(request: R) -> Start
where
    StartedTask: From<(Single<R>, Step<Result<R::Output, Error>>)>,
{
    Box::new(move |settings, seed, now| Single::start(request, settings, seed, now).into())
}

impl Task {
    /// The error that the caller can be told already, while the operation still undoes what it did.
    pub(crate) fn refusal(&self) -> Option<&Error> {
        match self {
            Self::Acquire(acquire) => acquire.refusal(),
            _ => None,
        }
    }
}

impl Answer {
    /// What JavaScript gets; a grant is nothing by itself.
    pub(crate) fn show(self) -> JsValue {
        match self {
            Self::Nothing | Self::Granted(_) | Self::ValidUntil(_) => JsValue::UNDEFINED,
            Self::Integer(number) => integer(number),
            Self::Drained(drained) => integer(drained.map(|drained| drained.amount)),
            Self::Flag(flag) => flag.into(),
            Self::Bytes(bytes) => bytes.map_or(JsValue::NULL, |bytes| {
                Uint8Array::from(bytes.as_slice()).into()
            }),
        }
    }
}

fn integer(number: Option<i64>) -> JsValue {
    number.map_or(JsValue::NULL, JsValue::from)
}

fn answered<T>(
    step: Step<Result<T, Error>>,
    answer: fn(T) -> Answer,
) -> Step<Result<Answer, Error>> {
    let Step { calls, next } = step;
    let next = match next {
        Next::WaitUntil(until) => Next::WaitUntil(until),
        Next::Done(output) => Next::Done(output.map(answer)),
    };
    Step { calls, next }
}
