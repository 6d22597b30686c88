//! What stands beside the state of an operation.

use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};

/// A value that is noted and decides nothing. Two states that differ in it alone are the same state, so that a model checker
/// visits them once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aside<T>(pub(crate) T);

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

impl<T> Hash for Aside<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<T> Deref for Aside<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Aside<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
