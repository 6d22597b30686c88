//! What a server says of itself: version, memory, persistence, replication.

use std::collections::BTreeMap;

use tallylock::blocking::PlainConnection;
use tallylock::{Error, Reply};

use super::finding::{Check, Finding};

const VERSION: Check = Check {
    name: "version",
    why: "a drain keeps the TTL by KEEPTTL, which servers have from 6.0 on",
};
const CLUSTER: Check = Check {
    name: "cluster",
    why: "tallylock does not follow the redirections of a Cluster",
};
const EVICTION: Check = Check {
    name: "eviction",
    why: "at its memory limit such a server deletes keys to make room: counters that are not billed yet, and locks that are held",
};
const PERSISTENCE: Check = Check {
    name: "persistence",
    why: "what is not on disk when a server goes down is gone: counters are not billed, and a lock is given twice",
};
const REPLICATION: Check = Check {
    name: "replication",
    why: "a replica that takes over without the last writes has lost what was added last, and gives a held lock again",
};

/// What comes with a later version than the least, and for whom.
const FEATURES: [([u32; 3], &str); 3] = [
    (
        [6, 0, 9],
        "transactions in place of scripts, for accounts that forbid EVAL",
    ),
    ([6, 2, 0], "rights by channel in ACLs"),
    ([7, 0, 0], "rights by sub-command in ACLs"),
];

type Fields = BTreeMap<String, String>;

/// Looks at all of it; fails only if the server cannot be talked to.
pub(super) fn findings(plain: &mut PlainConnection) -> Result<Vec<Finding>, Error> {
    let commands = [
        &["INFO"] as &[&str],
        &["CONFIG", "GET", "save"],
        &["CONFIG", "GET", "appendfsync"],
        &["CONFIG", "GET", "min-replicas-to-write"],
    ];
    let replies = plain.ask_all(commands)?;
    let Some(info) = replies.first().and_then(fields) else {
        let checks = [VERSION, CLUSTER, EVICTION, PERSISTENCE, REPLICATION];
        return Ok(checks.map(|check| check.refused("INFO")).into());
    };
    let setting = |place: usize| replies.get(place).and_then(setting);
    let mut findings = vec![version(&info)];
    if info
        .get("cluster_enabled")
        .is_some_and(|enabled| enabled == "1")
    {
        findings.push(CLUSTER.problem(
            "the server is a node of a Cluster",
            "use a server that is none",
        ));
    }
    findings.push(eviction(&info));
    findings.push(persistence(
        &info,
        setting(1).as_deref(),
        setting(2).as_deref(),
    ));
    findings.push(replication(&info, setting(3).as_deref()));
    Ok(findings)
}

fn version(info: &Fields) -> Finding {
    let Some(spoken) = info.get("redis_version") else {
        return VERSION.unseen(
            "cannot be seen: INFO has no version",
            "ask whoever runs the server",
        );
    };
    let found = match info.get("valkey_version") {
        Some(own) => format!("Valkey {own}, which speaks Redis {spoken}"),
        None => format!("Redis {spoken}"),
    };
    let numbers = spoken
        .split(['.', '-'])
        .map(|number| number.parse().unwrap_or(0));
    let mut numbers = numbers.chain([0, 0, 0]);
    let version: [u32; 3] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    if version < [6, 0, 0] {
        return VERSION.problem(found, "use Redis 6.0 or newer, or Valkey");
    }
    let missing: Vec<_> = FEATURES
        .iter()
        .filter(|(since, _)| version < *since)
        .map(|([major, minor, patch], what)| format!("{what} ({major}.{minor}.{patch})"))
        .collect();
    if missing.is_empty() {
        VERSION.ok(found)
    } else {
        VERSION.ok(format!("{found}; not there yet: {}", missing.join(", ")))
    }
}

fn eviction(info: &Fields) -> Finding {
    let (Some(policy), Some(limit)) = (info.get("maxmemory_policy"), info.get("maxmemory")) else {
        return EVICTION.unseen(
            "cannot be seen: INFO has no policy",
            "ask for CONFIG GET maxmemory-policy",
        );
    };
    let fix = "CONFIG SET maxmemory-policy noeviction";
    match (policy.as_str(), limit.as_str()) {
        ("noeviction", "0") => EVICTION.ok("noeviction, no limit"),
        ("noeviction", limit) => EVICTION.ok(format!("noeviction, at most {limit} bytes")),
        (policy, "0") => EVICTION.warning(format!("{policy}, but no limit is set so far"), fix),
        (policy, limit) => EVICTION.problem(format!("{policy}, at most {limit} bytes"), fix),
    }
}

fn persistence(info: &Fields, save: Option<&str>, fsync: Option<&str>) -> Finding {
    let is = |field: &str, value: &str| info.get(field).is_some_and(|found| found == value);
    let failing = |field: &str| info.get(field).is_some_and(|found| found != "ok");
    let always = "CONFIG SET appendonly yes, and appendfsync always if nothing may be lost";
    if failing("aof_last_write_status") || failing("rdb_last_bgsave_status") {
        return PERSISTENCE.problem(
            "the last attempt to write to disk failed; the server may refuse writes until one succeeds",
            "look at the server's log, its disk and the rights on its folder",
        );
    }
    if is("aof_enabled", "1") {
        return match fsync {
            Some("always") => PERSISTENCE.ok("each write is on disk before it is answered"),
            Some(fsync) => PERSISTENCE.warning(
                format!(
                    "appendonly, but appendfsync is {fsync}: a crash loses the last second or more"
                ),
                "CONFIG SET appendfsync always, if nothing may be lost",
            ),
            None => PERSISTENCE.unseen(
                "appendonly; how often it reaches the disk cannot be seen: CONFIG is refused",
                "ask whoever runs the server for appendfsync",
            ),
        };
    }
    match save {
        Some("") => PERSISTENCE.warning("nothing is written to disk", always),
        Some(save) => PERSISTENCE.warning(
            format!("only snapshots (save {save}): a crash loses all since the last"),
            always,
        ),
        None => PERSISTENCE.warning(
            "no append-only file; whether there are snapshots cannot be seen",
            always,
        ),
    }
}

fn replication(info: &Fields, least_replicas: Option<&str>) -> Finding {
    let field = |name: &str| info.get(name).map_or("", String::as_str);
    if field("role") == "slave" {
        return REPLICATION.problem(
            "this is a replica: it refuses writes, and what it holds may be late",
            "connect to its primary",
        );
    }
    let replicas = field("connected_slaves");
    match (replicas, least_replicas) {
        ("0", Some("0") | None) => REPLICATION.ok("a primary without replicas"),
        ("0", Some(least)) => REPLICATION.problem(
            format!("a primary without replicas that wants {least} before it writes: it refuses writes"),
            "bring the replicas back, or CONFIG SET min-replicas-to-write 0",
        ),
        (_, Some("0")) => REPLICATION.warning(
            format!("a primary with {replicas} replicas that goes on writing when it has lost them"),
            "CONFIG SET min-replicas-to-write 1, which narrows the gap; compare fences where it matters",
        ),
        (_, Some(least)) => REPLICATION.ok(format!("a primary with {replicas} replicas, of which {least} must be there")),
        (_, None) => REPLICATION.unseen(
            format!("a primary with {replicas} replicas; min-replicas-to-write cannot be seen: CONFIG is refused"),
            "ask whoever runs the server",
        ),
    }
}

/// The fields of INFO.
fn fields(reply: &Reply) -> Option<Fields> {
    let Reply::Text(text) = reply else {
        return None;
    };
    let text = String::from_utf8_lossy(text);
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    Some(
        fields
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect(),
    )
}

/// The value that CONFIG GET gave; nothing if it is forbidden or renamed.
fn setting(reply: &Reply) -> Option<String> {
    let Reply::Array(pair) = reply else {
        return None;
    };
    match &pair[..] {
        [_, Reply::Text(value)] => Some(String::from_utf8_lossy(value).into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn info(fields: &[(&str, &str)]) -> Fields {
        fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_version_is_compared_by_its_numbers() {
        for (spoken, level, missing) in [
            ("5.0.14", Level::Problem, 0),
            ("6.0.8", Level::Ok, 3),
            ("6.0.10", Level::Ok, 2),
            ("6.2.14", Level::Ok, 1),
            ("7.0.0-rc1", Level::Ok, 0),
            ("10.1", Level::Ok, 0),
        ] {
            let finding = version(&info(&[("redis_version", spoken)]));
            assert_eq!(finding.level, level, "{spoken}");
            assert_eq!(
                finding.found.matches('(').count(),
                missing,
                "{}",
                finding.found
            );
        }
        assert_eq!(version(&info(&[])).level, Level::Unseen);
    }

    #[test]
    fn what_weakens_a_lock_is_said() {
        let primary = |replicas| info(&[("role", "master"), ("connected_slaves", replicas)]);
        for (fields, least, level) in [
            (primary("0"), Some("0"), Level::Ok),
            (primary("0"), None, Level::Ok),
            (primary("0"), Some("1"), Level::Problem),
            (primary("2"), Some("0"), Level::Warning),
            (primary("2"), Some("1"), Level::Ok),
            (primary("2"), None, Level::Unseen),
            (info(&[("role", "slave")]), Some("0"), Level::Problem),
        ] {
            assert_eq!(
                replication(&fields, least).level,
                level,
                "{fields:?} {least:?}"
            );
        }
        let appends = info(&[
            ("aof_enabled", "1"),
            ("aof_last_write_status", "ok"),
            ("rdb_last_bgsave_status", "ok"),
        ]);
        for (fsync, level) in [
            (Some("always"), Level::Ok),
            (Some("everysec"), Level::Warning),
            (None, Level::Unseen),
        ] {
            assert_eq!(persistence(&appends, None, fsync).level, level);
        }
        for save in [Some(""), Some("3600 1"), None] {
            assert_eq!(
                persistence(&info(&[("aof_enabled", "0")]), save, Some("always")).level,
                Level::Warning
            );
        }
        let fails = info(&[("aof_enabled", "1"), ("aof_last_write_status", "err")]);
        assert_eq!(
            persistence(&fails, None, Some("always")).level,
            Level::Problem
        );
    }
}
