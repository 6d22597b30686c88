//! The first few of many.

/// The few with the smallest rank of any number that are offered; memory for no more than those.
pub(super) struct First<R, T> {
    most: usize,
    entries: Vec<(R, T)>,
}

impl<R: Ord, T> First<R, T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            entries: Vec::with_capacity(most + 1),
        }
    }

    /// Takes it in if it is among the first; of those that are the same, the last one counts.
    pub(super) fn offer(
        &mut self,
        rank: R,
        is_same: impl Fn(&T) -> bool,
        entry: impl FnOnce() -> T,
    ) {
        self.entries.retain(|(_, kept)| !is_same(kept));
        let place = self.entries.partition_point(|(kept, _)| *kept <= rank);
        if place < self.most {
            self.entries.insert(place, (rank, entry()));
            self.entries.truncate(self.most);
        }
    }

    /// In the order of their ranks.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_are_kept_and_each_once() {
        let mut first = First::new(3);
        for (rank, name) in [(5, "a"), (1, "b"), (4, "c"), (9, "d"), (2, "e"), (1, "b")] {
            first.offer(rank, |kept| *kept == name, || name);
        }
        assert_eq!(first.iter().copied().collect::<Vec<_>>(), ["b", "e", "c"]);
        first.offer(8, |kept| *kept == "b", || "b");
        assert_eq!(first.iter().copied().collect::<Vec<_>>(), ["e", "c", "b"]);
    }
}
