//! Values that belong to one process: a child made by `fork` has copies of its parent's sockets, threads and locks that
//! it must neither use nor drop.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

/// A value of this process, made when it is first asked for, and again in a child made by `fork`.
///
/// Looking takes no lock: one that another thread of the parent held during the fork would be held for ever.
pub(crate) struct PerProcess<T>(ArcSwapOption<Resident<T>>);

/// A value together with the process that it belongs to.
pub(crate) struct Resident<T> {
    process: u32,
    value: T,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(ArcSwapOption::const_empty())
    }

    /// The value of this process. `make` is given the parent's value where this is a child that asks for the first time.
    pub(crate) fn get(&self, make: impl FnOnce(Option<Arc<Resident<T>>>) -> T) -> Arc<Resident<T>> {
        let present = self.0.load_full();
        let process = std::process::id();
        match present {
            Some(resident) if resident.process == process => resident,
            _ => self.replace(present, process, make),
        }
    }

    #[cold]
    fn replace(
        &self,
        present: Option<Arc<Resident<T>>>,
        process: u32,
        make: impl FnOnce(Option<Arc<Resident<T>>>) -> T,
    ) -> Arc<Resident<T>> {
        let fresh = Arc::new(Resident {
            process,
            value: make(present.clone()),
        });
        let found = self.0.compare_and_swap(&present, Some(Arc::clone(&fresh)));
        let was_replaced = match (&*found, &present) {
            (None, None) => true,
            (Some(found), Some(present)) => Arc::ptr_eq(found, present),
            _ => false,
        };
        if was_replaced {
            // The parent's value is kept for ever: dropping it would close the parent's sessions and join its threads.
            std::mem::forget(present);
            return fresh;
        }
        // Another thread of this process was faster; what it made is as good.
        found.as_ref().map_or(fresh, Arc::clone)
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let left = self
            .0
            .swap(None)
            .filter(|resident| resident.process != std::process::id());
        // The parent's again.
        std::mem::forget(left);
    }
}

impl<T> std::ops::Deref for Resident<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
