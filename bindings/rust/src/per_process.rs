//! What each process has for itself.

use std::convert::Infallible;
use std::process;
use std::sync::OnceLock;

use tallylock_core::error::Error;

/// A value that is made when a process first asks for it: a child of `fork` makes its own, for it must neither use nor drop
/// what its parent had.
pub(crate) struct PerProcess<T> {
    own: OnceLock<(u32, T)>,
    child: OnceLock<Box<Self>>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self {
            own: OnceLock::new(),
            child: OnceLock::new(),
        }
    }

    /// That of this process, if it has been made.
    pub(crate) fn present(&self) -> Option<&T> {
        match self.own.get() {
            Some((owner, value)) if *owner == process::id() => Some(value),
            _ => self.child.get()?.present(),
        }
    }

    /// That of this process.
    pub(crate) fn get(&self, make: impl FnOnce() -> Result<T, Error>) -> Result<&T, Error> {
        self.get_or_try(make)
    }

    /// The same, of what can always be made.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let Ok(value) = self.get_or_try::<Infallible>(|| Ok(make()));
        value
    }

    fn get_or_try<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        match self.own.get() {
            Some((owner, value)) if *owner == process::id() => Ok(value),
            Some(_) => self.child.get_or_init(Box::default).get_or_try(make),
            None => {
                let fresh = (process::id(), make()?);
                // Where two threads have made one, the slower one's is dropped.
                let (_, value) = self.own.get_or_init(|| fresh);
                Ok(value)
            }
        }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let parents = self.own.take().filter(|(owner, _)| *owner != process::id());
        std::mem::forget(parents);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tallylock_core::error::Code;

    use super::*;

    #[test]
    fn a_child_makes_its_own_and_drops_nothing_of_its_parent() {
        let parents = Arc::new(());
        let value = PerProcess::new();
        value
            .own
            .set((process::id() + 1, Arc::clone(&parents)))
            .unwrap();
        assert!(value.present().is_none());
        let refused = value.get(|| Err(Error::new(Code::Unavailable, "no thread")));
        assert_eq!(refused.unwrap_err().code(), Code::Unavailable);
        let ours = Arc::new(());
        assert!(Arc::ptr_eq(
            value.get(|| Ok(Arc::clone(&ours))).unwrap(),
            &ours
        ));
        assert!(Arc::ptr_eq(value.get_or_init(Arc::default), &ours));
        assert!(Arc::ptr_eq(value.present().unwrap(), &ours));
        drop(value);
        assert_eq!(
            (Arc::strong_count(&parents), Arc::strong_count(&ours)),
            (2, 1)
        );
    }
}
