//! A part of a state that many states have in common.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A value that is cloned by reference and hashed once: a move changes one or two parts of a state and leaves the others.
#[derive(Debug)]
pub(crate) struct Shared<T>(Arc<Hashed<T>>);

#[derive(Debug)]
struct Hashed<T> {
    hash: u64,
    value: T,
}

impl<T: Clone + Hash> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        let hash = hasher.finish();
        Self(Arc::new(Hashed { hash, value }))
    }

    /// What it is known by: two that differ in nothing have the same.
    pub(crate) fn key(&self) -> u64 {
        self.0.hash
    }

    /// Changes it here, and in no other state.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.0.value.clone();
        let result = change(&mut value);
        *self = Self::new(value);
        result
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl<T: PartialEq> Eq for Shared<T> {}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.hash == other.0.hash && self.0.value == other.0.value
    }
}
