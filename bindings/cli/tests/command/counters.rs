//! `tallylock counter`.

use serde_json::json;
use tallylock::Code;
use tallylock_testkit::{Server, on_each_server};

use crate::run::{TTL, client, command, json, json_and_code, plant, pttl, run};

on_each_server! {
    fn a_counter_is_shown_with_what_is_beside_it(server: Server) {
        let counter = client(&server).counter("session:1", TTL).unwrap();
        for id in ["open", "committed", "aborted"] {
            counter.add_once(30, id).unwrap();
            counter.claim(id).unwrap();
        }
        counter.commit("committed", 30).unwrap();
        counter.abort("aborted").unwrap();
        counter.clone().fenced(9).drain().unwrap();
        counter.add(-4).unwrap();
        client(&server).counter("session:12", TTL).unwrap().add_once(1, "x").unwrap();

        let shown = json(&["counter", "show", &server.url(), "session:1"]);
        assert!((1..=900_000).contains(&shown["remaining_ms"].as_i64().unwrap()));
        let expected = json!({
            "key": "session:1", "total": "-4", "remaining_ms": shown["remaining_ms"], "fence": null, "guard": "9",
            "idempotency_keys": 3,
            "open_claims": { "count": 1, "sum": "30" },
            "committed_claims": { "count": 1, "sum": "30" },
            "aborted_claims": { "count": 1, "sum": "30" },
        });
        assert_eq!(shown, expected);
        let told = run(["counter", "show", &server.url(), "session:1"]);
        assert!(told.code == Some(0) && told.stdout.contains("total             -4\n"), "{told:?}");
        let (code, none) = json_and_code(&["counter", "show", &server.url(), "session:none"]);
        assert_eq!((code, &none["total"]), (Some(1), &json!(null)));

        let claims = json(&["counter", "claims", &server.url(), "session:1"]);
        assert_eq!(claims.as_array().unwrap().len(), 1);
        assert_eq!((&claims[0]["id"], &claims[0]["amount"]), (&json!("open"), &json!("30")));
        assert!(claims[0]["remaining_ms"].as_i64().unwrap() > 6 * 24 * 3_600_000);
        assert!(run(["counter", "claims", &server.url(), "session:1"]).stdout.contains("open"));
    }

    fn a_drain_prints_what_it_took_and_keeps_the_ttl(server: Server) {
        let counter = client(&server).counter("session:1", TTL).unwrap();
        counter.add(i64::MIN).unwrap();
        let refused = run(["counter", "drain", &server.url(), "session:1"]);
        assert_eq!(refused.code, Some(64), "{refused:?}");
        assert_eq!(counter.read().unwrap(), Some(i64::MIN), "it asks first");

        let drained = run(["counter", "drain", &server.url(), "session:1", "--yes"]);
        assert_eq!((drained.code, drained.stdout.as_str()), (Some(0), "-9223372036854775808\n"));
        assert_eq!(counter.read().unwrap(), Some(0));
        assert!((1..=900_000).contains(&pttl(&server, "session:1")));
        assert_eq!(run(["counter", "drain", &server.url(), "session:none", "--yes"]).code, Some(1));

        plant(&server, "session:2", "5");
        let drained = run(["counter", "drain", &server.url(), "session:2", "--yes", "--ttl", "2m"]);
        assert_eq!(drained.stdout, "5\n");
        assert!((1..=120_000).contains(&pttl(&server, "session:2")), "it had lost its TTL");
    }

    fn the_url_may_be_in_the_environment(server: Server) {
        client(&server).counter("session:1", TTL).unwrap().add(30).unwrap();
        let output = command(["counter", "drain", "session:1", "--yes"]).env("TALLYLOCK_REDIS_URL", server.url()).output().unwrap();
        assert_eq!(output.stdout, b"30\n");
    }
}

/// What was taken is nowhere else.
#[test]
#[cfg(target_os = "linux")]
fn an_amount_that_cannot_be_printed_is_told_all_the_same() {
    let server = Server::valkey();
    let counter = client(&server).counter("session:1", TTL).unwrap();
    counter.add(30).unwrap();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = command(["counter", "drain", &server.url(), "session:1", "--yes"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(74));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("30 was taken"),
        "{output:?}"
    );
    assert_eq!(counter.read().unwrap(), Some(0));
}

#[test]
fn a_key_that_is_none_is_refused() {
    let server = Server::valkey();
    for key in ["", "a{", "x:tl1:fence"] {
        let refused = run(["counter", "show", &server.url(), key]);
        assert_eq!(refused.code, Some(64), "{refused:?}");
        assert!(
            refused.stderr.contains(Code::InvalidArgument.as_str()),
            "{refused:?}"
        );
    }
}
