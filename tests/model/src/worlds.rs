//! The worlds that are walked through, and what is to be seen in each.

use std::sync::Arc;

use crate::client::{Habits, TTL};
use crate::properties::{EXCLUSION, FENCES};
use crate::world::Faults;
pub(crate) use crate::world::World;

/// A world, and what is to be seen in it.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) world: World,
    /// The property that does not hold there; nothing where all hold, and the lock can be granted.
    pub(crate) breaks: Option<&'static str>,
}

/// How large the worlds are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// What runs with the tests.
    Small,
    /// What a machine has time for at night.
    Deep,
}

impl Size {
    /// How many moves are made in a world at the most. Two cores make a million in a second or two, and remember a state in 20 bytes.
    pub(crate) fn most_moves(self) -> usize {
        self.of(4_000_000, 150_000_000)
    }

    /// Whether a world may have more moves than that. What runs with the tests is seen to its end.
    pub(crate) fn may_be_cut_short(self) -> bool {
        self.of(false, true)
    }

    fn of<T>(self, small: T, deep: T) -> T {
        match self {
            Self::Small => small,
            Self::Deep => deep,
        }
    }
}

pub(crate) fn cases(size: Size) -> Vec<Case> {
    let mut cases = one_node(size);
    cases.extend(three_nodes(size));
    cases.extend(fences(size));
    cases.extend(broken());
    cases
}

fn one_node(size: Size) -> Vec<Case> {
    let late = Faults {
        delays: size.of(1, 2),
        oversleeps: 1,
        ..Faults::default()
    };
    vec![
        holds(
            "one node: lost connections, a clock that gains",
            World {
                attempts: size.of(1, 2),
                faults: Faults {
                    cuts: 1,
                    gains: 1,
                    ..late
                },
                ..one()
            },
        ),
        holds(
            "one node: clients that wait, are told and stop",
            World {
                habits: Habits {
                    wait: 120,
                    ..Habits::default()
                },
                faults: Faults {
                    cuts: size.of(0, 1),
                    stops: 1,
                    notices: 1,
                    ..late
                },
                ..one()
            },
        ),
        holds(
            "one node: renewal, a lost connection, a clock that gains",
            World {
                habits: renewing(),
                faults: Faults {
                    delays: size.of(0, 1),
                    cuts: 1,
                    gains: 1,
                    ..late
                },
                horizon: size.of(3 * TTL / 2, 5 * TTL / 2),
                ..one()
            },
        ),
        holds(
            "one node: renewal, an operator who steals",
            World {
                habits: renewing(),
                faults: Faults { steals: 1, ..late },
                ..one()
            },
        ),
    ]
}

fn three_nodes(size: Size) -> Vec<Case> {
    let late = Faults {
        delays: 1,
        oversleeps: 1,
        ..Faults::default()
    };
    let rarely_late = Faults {
        delays: size.of(0, 1),
        ..late
    };
    vec![
        holds(
            "three nodes: slow connections",
            World {
                faults: Faults {
                    delays: size.of(1, 2),
                    ..late
                },
                ..three()
            },
        ),
        holds(
            "three nodes: a client that stops, a clock that gains",
            World {
                faults: Faults {
                    stops: 1,
                    gains: 1,
                    ..rarely_late
                },
                ..three()
            },
        ),
        holds(
            "three nodes: a lost connection",
            World {
                faults: Faults {
                    cuts: 1,
                    ..rarely_late
                },
                ..three()
            },
        ),
        holds(
            "three nodes: renewal",
            World {
                habits: renewing(),
                faults: Faults { delays: 1, ..late },
                horizon: size.of(TTL, 3 * TTL / 2),
                ..three()
            },
        ),
    ]
}

fn fences(size: Size) -> Vec<Case> {
    let loses_fence = Faults {
        delays: size.of(0, 1),
        lost_fences: 1,
        ..Faults::default()
    };
    let free_clocks = World {
        clocks: vec![0, 40, 7],
        frail: 3,
        faults: Faults {
            delays: size.of(1, 2),
            ..Faults::default()
        },
        ..three()
    };
    vec![
        holds("three nodes: free clocks, fences kept", free_clocks.clone()),
        breaks(
            "three nodes: free clocks, a fence lost",
            FENCES,
            World {
                faults: loses_fence,
                ..free_clocks
            },
        ),
        holds(
            "three nodes: clocks that agree, a fence lost",
            World {
                faults: loses_fence,
                ..three()
            },
        ),
    ]
}

fn broken() -> Vec<Case> {
    let restarts = Faults {
        restarts: 1,
        ..Faults::default()
    };
    vec![
        breaks(
            "one node: it restarts and has kept nothing",
            EXCLUSION,
            World {
                faults: restarts,
                ..one()
            },
        ),
        breaks(
            "one node: a clock that gains more than the drift",
            EXCLUSION,
            World {
                faults: Faults {
                    gains: 2,
                    ..Faults::default()
                },
                ..one()
            },
        ),
        breaks(
            "three nodes: one restarts and has kept nothing",
            EXCLUSION,
            World {
                faults: restarts,
                ..three()
            },
        ),
        breaks(
            "one node: one token for two attempts",
            EXCLUSION,
            World {
                attempts: 2,
                habits: Habits {
                    reuses_token: true,
                    ..Habits::default()
                },
                faults: Faults {
                    cuts: 1,
                    ..Faults::default()
                },
                ..one()
            },
        ),
    ]
}

fn one() -> World {
    World {
        clients: 2,
        attempts: 1,
        habits: Habits::default(),
        clocks: vec![0],
        faults: Faults::default(),
        frail: 1,
        horizon: 5 * TTL / 2,
        seen: Arc::default(),
    }
}

fn three() -> World {
    World {
        clocks: vec![0; 3],
        ..one()
    }
}

fn renewing() -> Habits {
    Habits {
        renews: true,
        ..Habits::default()
    }
}

fn holds(name: &'static str, world: World) -> Case {
    Case {
        name,
        world,
        breaks: None,
    }
}

fn breaks(name: &'static str, property: &'static str, world: World) -> Case {
    Case {
        name,
        world,
        breaks: Some(property),
    }
}
