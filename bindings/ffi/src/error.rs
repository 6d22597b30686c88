//! The one error that crosses the boundary; wrappers map its code to their classes.

use tallylock::{Code, Error, Reason};

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Error)]
pub enum CallError {
    /// The call failed.
    Failed {
        /// The word for the kind of error, the same in every language.
        code: String,
        /// Why a lease is lost, where `code` is `lost`.
        reason: Option<String>,
        /// The key that the call was about, as text, shortened if very long.
        key: Option<String>,
        /// What happened and what to do next, for people.
        detail: String,
        /// `no` or `maybe`: whether the call may have been applied.
        applied: String,
    },
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Failed { detail, .. } = self;
        f.write_str(detail)
    }
}

impl std::error::Error for CallError {}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Failed {
            code: error.code().as_str().into(),
            reason: error.code().reason().map(|reason| reason.as_str().into()),
            key: error.key().map(Into::into),
            detail: error.to_string(),
            applied: error.applied().as_str().into(),
        }
    }
}

/// The handle names nothing: what it named was closed or freed.
pub(crate) fn closed(what: &str) -> Error {
    Error::new(Code::Closed, format!("the {what} is closed"))
}

/// The lease belongs to the process that forked this one.
pub(crate) fn forked() -> Error {
    Error::new(
        Code::Lost(Reason::Forked),
        "the process that forked this one holds the lease",
    )
}

/// What a verb's error is to its caller: about this key, whoever noticed it.
pub(crate) fn about(key: &[u8]) -> impl Fn(Error) -> Error + '_ {
    move |error| {
        if error.key().is_some() || key.is_empty() {
            error
        } else {
            error.about(key)
        }
    }
}
