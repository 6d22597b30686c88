//! Where a case is run: what another program puts there, and what is left.

use std::time::Duration;

use tallylock::Memory;
use tallylock_testkit::Server;

use crate::format::{Plant, PlantList, PlantText};

/// A key that is left: its text, or nothing for another type; its remaining milliseconds, or nothing without a TTL.
pub(crate) struct Found {
    pub(crate) key: Vec<u8>,
    pub(crate) text: Option<Vec<u8>>,
    pub(crate) ttl_ms: Option<u64>,
}

/// The memory of one client, or a real server.
pub(crate) enum Stage<'a> {
    Memory(Memory),
    Server(&'a Server),
}

impl Stage<'_> {
    pub(crate) fn plant(&self, plant: &Plant) {
        let (key, ttl_ms) = match plant {
            Plant::Text(PlantText { key, ttl_ms, .. })
            | Plant::List(PlantList { key, ttl_ms, .. }) => (key.bytes(), *ttl_ms),
        };
        match self {
            Self::Memory(memory) => {
                let ttl = ttl_ms.map(Duration::from_millis);
                match plant {
                    Plant::Text(text) => memory.put(key, text.value.bytes(), ttl),
                    Plant::List(_) => memory.put_other_type(key, ttl),
                }
                .expect("a plant with a good TTL");
            }
            Self::Server(server) => {
                let mut plants = redis::pipe();
                plants.cmd("DEL").arg(&key);
                match plant {
                    Plant::Text(text) => plants.cmd("SET").arg(&key).arg(text.value.bytes()),
                    Plant::List(_) => plants.cmd("RPUSH").arg(&key).arg("x"),
                };
                if let Some(ttl_ms) = ttl_ms {
                    plants.cmd("PEXPIRE").arg(&key).arg(ttl_ms);
                }
                plants.exec(&mut server.connection()).unwrap();
            }
        }
    }

    pub(crate) fn remove(&self, key: &[u8]) {
        match self {
            Self::Memory(memory) => memory.remove(key),
            Self::Server(server) => redis::cmd("DEL")
                .arg(key)
                .exec(&mut server.connection())
                .unwrap(),
        }
    }

    /// Every key that is there, in the order of the keys.
    pub(crate) fn left(&self) -> Vec<Found> {
        match self {
            Self::Memory(memory) => {
                let keys = memory.keys().into_iter().map(|entry| Found {
                    key: entry.key,
                    text: entry.value,
                    ttl_ms: entry.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap()),
                });
                keys.collect()
            }
            Self::Server(server) => left_on(server),
        }
    }
}

fn left_on(server: &Server) -> Vec<Found> {
    let mut connection = server.connection();
    let mut keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    keys.sort();
    let found = keys.into_iter().map(|key| {
        let kind: String = redis::cmd("TYPE").arg(&key).query(&mut connection).unwrap();
        let ttl: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        let text =
            (kind == "string").then(|| redis::cmd("GET").arg(&key).query(&mut connection).unwrap());
        Found {
            key,
            text,
            ttl_ms: u64::try_from(ttl).ok(),
        }
    });
    found.collect()
}
