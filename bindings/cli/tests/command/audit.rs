//! `tallylock audit`.

use std::time::{Duration, Instant};

use serde_json::json;
use tallylock_testkit::{Server, on_each_server};

use crate::run::{TTL, client, json, plant, pttl, run};

on_each_server! {
    fn every_key_is_counted_as_what_it_is(server: Server) {
        let client = client(&server);
        let counter = client.counter("session:1:pending", TTL).unwrap();
        counter.add_once(40, "evt-1").unwrap();
        counter.claim("run-1").unwrap();
        counter.add(7).unwrap();
        counter.clone().fenced(3).drain().unwrap();
        counter.add(i64::MAX).unwrap();
        let lease = client.lock("session:1:lock", TTL).unwrap().acquire(Duration::ZERO).unwrap();
        plant(&server, "session:2:ctx", "text");
        plant(&server, "lonely", "5");
        redis::cmd("LPUSH").arg("queue:1").arg("x").exec(&mut server.connection()).unwrap();

        let all = json(&["audit", &server.url()]);
        assert_eq!((&all["keys"], &all["without_ttl"], &all["repaired"]), (&json!(9), &json!(3), &json!(null)));
        let kinds = json!({
            "counter": { "keys": 2, "without_ttl": 1 },
            "lock": { "keys": 1, "without_ttl": 0 },
            "text": { "keys": 1, "without_ttl": 1 },
            "other_type": { "keys": 1, "without_ttl": 1 },
            "fence": { "keys": 1, "without_ttl": 0 },
            "once": { "keys": 1, "without_ttl": 0 },
            "claim": { "keys": 1, "without_ttl": 0 },
            "guard": { "keys": 1, "without_ttl": 0 },
        });
        assert_eq!(all["kinds"], kinds);
        let session = json!({
            "prefix": "session", "keys": 7, "without_ttl": 1,
            "kinds": { "counter": 1, "lock": 1, "text": 1, "other_type": 0, "fence": 1, "once": 1, "claim": 1, "guard": 1 },
        });
        assert_eq!(all["prefixes"][0], session);
        assert_eq!((&all["prefixes"][1]["prefix"], &all["prefixes"][1]["keys"]), (&json!("queue"), &json!(1)));
        assert_eq!((&all["no_prefix"]["keys"], &all["other_prefixes"]["keys"]), (&json!(1), &json!(0)));
        let largest = &all["largest_counters"];
        assert_eq!((&largest[0]["key"], &largest[0]["amount"]), (&json!("session:1:pending"), &json!("9223372036854775807")));
        assert!((1..=900_000).contains(&largest[0]["remaining_ms"].as_i64().unwrap()));
        assert_eq!(largest[1], json!({ "key": "lonely", "amount": "5", "remaining_ms": null }));
        assert_eq!(all["open_claims"], json!({ "count": 1, "sum": "40" }));
        assert_eq!((&all["ending_claims"]["count"], &all["ending_claims"]["within_ms"]), (&json!(0), &json!(86_400_000)));

        let near = json(&["audit", &server.url(), "--match", "*claim:*", "--near", "8d"]);
        assert_eq!((&near["keys"], &near["ending_claims"]["sum"]), (&json!(1), &json!("40")));
        let claim = &near["ending_claims"]["first"][0];
        assert_eq!((&claim["counter"], &claim["id"], &claim["amount"]), (&json!("session:1:pending"), &json!("run-1"), &json!("40")));

        let told = run(["audit", &server.url(), "--near", "8d"]);
        assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "no progress where there is no terminal");
        for line in ["9 keys, 3 of them without a TTL", "Open claims: 1, of 40 in all", "With less than 8d left: 1, of 40"] {
            assert!(told.stdout.contains(line), "{line} is not in:\n{}", told.stdout);
        }
        lease.release().unwrap();
    }

    fn only_keys_without_a_ttl_that_match_are_repaired(server: Server) {
        client(&server).counter("session:live", TTL).unwrap().add(1).unwrap();
        for number in 0..40 {
            plant(&server, &format!("session:{number}"), "1");
        }
        plant(&server, "other:1", "1");
        redis::cmd("LPUSH").arg("session:list").arg("x").exec(&mut server.connection()).unwrap();
        let before = pttl(&server, "session:live");

        let begun = Instant::now();
        let repair = ["audit", &server.url(), "--match", "session:*", "--repair", "--ttl", "15h", "--yes", "--rate", "100"];
        let report = json(&repair);
        assert_eq!((&report["without_ttl"], &report["repaired"]), (&json!(41), &json!(41)));
        assert!(begun.elapsed() >= Duration::from_millis(400), "41 keys at 100 a second: {:?}", begun.elapsed());
        for key in ["session:0", "session:39", "session:list"] {
            assert!((53_000_000..=54_000_000).contains(&pttl(&server, key)), "{key}: {}", pttl(&server, key));
        }
        assert!(pttl(&server, "session:live") <= before, "a key that has a TTL is not touched");
        assert_eq!(pttl(&server, "other:1"), -1, "nor one that does not match");
        let again = run(repair);
        assert!(again.stdout.contains("\n0 keys were given a TTL"), "{again:?}");
    }

    fn the_documented_rights_are_enough(server: Server) {
        plant(&server, "session:1", "1");
        let page = include_str!("../../../../docs/cli.md");
        let rights = |command: &str| {
            let row = page.lines().find_map(|line| line.strip_prefix(&format!("| `{command}` | `"))).unwrap();
            row.split('`').next().unwrap().split(' ').collect::<Vec<_>>()
        };
        let look = [&["~session:*"], &rights("audit")[..]].concat();
        let url = crate::run::account(&server, &look);
        let found = json(&["audit", &url, "--match", "session:*"]);
        assert_eq!(found["without_ttl"], json!(1));
        let repair = [&look[..], &rights("audit --repair")[..]].concat();
        let url = crate::run::account(&server, &repair);
        let repaired = json(&["audit", &url, "--match", "session:*", "--repair", "--ttl", "15m", "--yes"]);
        assert_eq!(repaired["repaired"], json!(1));
        let refused: Vec<redis::Value> = redis::cmd("ACL").arg("LOG").query(&mut server.connection()).unwrap();
        assert!(refused.is_empty(), "{refused:?}");
    }

    fn a_repair_that_is_refused_says_how_far_it_came(server: Server) {
        plant(&server, "session:1", "1");
        let url = crate::run::account(&server, &["~session:*", "+@all", "-eval", "-evalsha", "-watch"]);
        let refused = run(["audit", &url, "--match", "session:*", "--repair", "--ttl", "15m", "--yes"]);
        assert_eq!(refused.code, Some(77), "{refused:?}");
        assert!(refused.stderr.contains("0 keys were given a TTL before that"), "{refused:?}");
        assert_eq!(pttl(&server, "session:1"), -1);
    }
}

#[test]
fn nothing_is_repaired_unasked() {
    let server = Server::valkey();
    plant(&server, "session:1", "1");
    let refused = run([
        "audit",
        &server.url(),
        "--match",
        "*",
        "--repair",
        "--ttl",
        "15m",
    ]);
    assert_eq!(refused.code, Some(64), "{refused:?}");
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    let unlimited = run(["audit", &server.url(), "--repair", "--ttl", "15m", "--yes"]);
    assert_eq!(
        unlimited.code,
        Some(64),
        "a repair says of which keys: {unlimited:?}"
    );
    assert_eq!(pttl(&server, "session:1"), -1);
}

#[test]
fn a_key_plays_no_tricks_on_the_terminal() {
    let server = Server::valkey();
    plant(&server, "\x1b[31mred\n:1", "5");
    let told = run(["audit", &server.url()]);
    assert!(
        !told.stdout.contains('\x1b') && told.stdout.contains(r"\x1b[31mred\x0a:1"),
        "{told:?}"
    );
}
