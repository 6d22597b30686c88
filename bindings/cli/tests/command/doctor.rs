//! `tallylock doctor`.

use serde_json::{Value, json};
use tallylock_testkit::{Kind, Server, on_each_server};

use crate::run::{account, json_and_code, run};

/// The finding of one server about this.
fn finding<'a>(report: &'a Value, check: &str) -> &'a Value {
    let findings = report["servers"][0]["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["check"] == check)
        .unwrap_or_else(|| panic!("no {check} in {report}"))
}

fn level<'a>(report: &'a Value, check: &str) -> &'a str {
    finding(report, check)["level"].as_str().unwrap()
}

fn keys(server: &Server) -> Vec<String> {
    redis::cmd("KEYS")
        .arg("*")
        .query(&mut server.connection())
        .unwrap()
}

fn set(server: &Server, name: &str, value: &str) {
    redis::cmd("CONFIG")
        .arg("SET")
        .arg(name)
        .arg(value)
        .exec(&mut server.connection())
        .unwrap();
}

on_each_server! {
    fn a_good_server_has_nothing_against_it_but_what_it_forgets(server: Server) {
        let (code, report) = json_and_code(&["doctor", &server.url()]);
        assert_eq!((code, &report["worst"]), (Some(0), &json!("warning")), "{report}");
        let warned: Vec<_> = report["servers"][0]["findings"].as_array().unwrap().iter()
            .filter(|finding| finding["level"] != "ok").map(|finding| &finding["check"]).collect();
        assert_eq!(warned, ["persistence"], "the test's server keeps nothing on disk");
        let persistence = finding(&report, "persistence");
        assert!(persistence["why"].is_string() && persistence["fix"].is_string(), "{persistence}");
        assert_eq!(keys(&server), Vec::<String>::new(), "nothing is left behind");

        assert_eq!(run(["doctor", &server.url(), "--strict"]).code, Some(1));
        set(&server, "appendonly", "yes");
        set(&server, "appendfsync", "always");
        let well = run(["doctor", &server.url(), "--strict"]);
        assert_eq!(well.code, Some(0), "{well:?}");
        assert!(!well.stdout.contains("fix:") && !well.stdout.contains('\x1b'), "no colours in a pipe: {well:?}");
        set(&server, "appendfsync", "everysec");
        assert_eq!(level(&json_and_code(&["doctor", &server.url()]).1, "persistence"), "warning");
    }

    fn eviction_is_a_problem_once_there_is_a_limit(server: Server) {
        set(&server, "maxmemory-policy", "volatile-lru");
        let (code, report) = json_and_code(&["doctor", &server.url()]);
        assert_eq!((code, level(&report, "eviction")), (Some(0), "warning"));
        set(&server, "maxmemory", "100mb");
        let (code, report) = json_and_code(&["doctor", &server.url()]);
        assert_eq!((code, level(&report, "eviction")), (Some(2), "problem"));
        let told = run(["doctor", &server.url()]);
        assert_eq!(told.code, Some(2));
        assert!(told.stdout.contains("fix: CONFIG SET maxmemory-policy noeviction"), "{told:?}");
    }

    fn a_replica_is_a_problem(server: Server) {
        let primary = server.kind().start(&[]);
        redis::cmd("REPLICAOF").arg("127.0.0.1").arg(primary.port()).exec(&mut server.connection()).unwrap();
        let (code, report) = json_and_code(&["doctor", &server.url()]);
        assert_eq!((code, level(&report, "replication")), (Some(2), "problem"), "{report}");
        // A replica that is still to load its data says LOADING or READONLY to the rest.
        assert_eq!(level(&report, "counters"), "problem");
    }

    fn an_account_is_tried(server: Server) {
        let verbs = ["~session:*", "+evalsha", "+eval", "+get", "+set", "+incrby", "+type", "+pttl", "+pexpire", "+del", "+time", "+publish", "+subscribe", "+unsubscribe", "+ping"];
        let with = |more: &[&'static str]| [verbs.as_slice(), more].concat();
        let doctor = |rules: &[&str]| {
            let url = account(&server, rules);
            let (code, report) = json_and_code(&["doctor", &url, "--prefix", "session:"]);
            assert_eq!(keys(&server), Vec::<String>::new(), "{rules:?} leaves something");
            (code, report)
        };

        let (code, report) = doctor(&with(&["allchannels"]));
        assert_eq!(code, Some(0), "{report}");
        for (check, expected) in [
            ("version", "unseen"), ("eviction", "unseen"), ("persistence", "unseen"), ("replication", "unseen"),
            ("account", "unseen"), ("scripts", "ok"), ("counters", "ok"), ("locks", "ok"), ("channels", "ok"), ("latency", "ok"),
        ] {
            assert_eq!(level(&report, check), expected, "{check}: {report}");
        }
        assert!(finding(&report, "version")["found"].as_str().unwrap().starts_with("cannot be seen"));

        let (code, report) = doctor(&with(&["resetchannels"]));
        assert_eq!((code, level(&report, "channels"), level(&report, "locks")), (Some(0), "warning", "ok"));
        for forbidden in ["-publish", "-subscribe", "-unsubscribe"] {
            let (code, report) = doctor(&with(&["allchannels", forbidden]));
            assert_eq!((code, level(&report, "channels"), level(&report, "latency")), (Some(0), "warning", "ok"), "{report}");
            assert!(finding(&report, "channels")["found"].as_str().unwrap().contains(&forbidden[1..].to_uppercase()), "{report}");
        }

        let transactions = ["allchannels", "-eval", "-evalsha", "+watch", "+unwatch", "+multi", "+exec", "+discard", "+hello"];
        let (code, report) = doctor(&with(&transactions));
        assert_eq!((code, level(&report, "scripts"), level(&report, "counters"), level(&report, "locks")), (Some(0), "warning", "ok", "ok"), "{report}");

        let (code, report) = doctor(&with(&["allchannels", "-eval", "-evalsha"]));
        assert_eq!((code, level(&report, "scripts"), level(&report, "counters")), (Some(2), "warning", "problem"), "{report}");

        let (code, report) = doctor(&with(&["allchannels", "+info", "+acl", "-incrby"]));
        assert_eq!((code, level(&report, "scripts"), level(&report, "counters")), (Some(2), "ok", "problem"), "{report}");
        assert_eq!((level(&report, "account"), level(&report, "eviction"), level(&report, "persistence")), ("ok", "ok", "warning"));

        let url = account(&server, &with(&["allchannels"]));
        let (code, report) = json_and_code(&["doctor", &url]);
        assert_eq!((code, level(&report, "counters")), (Some(0), "unseen"));
        assert!(finding(&report, "counters")["fix"].as_str().unwrap().contains("--prefix"));
    }

    fn a_server_without_eval_and_config_is_no_error(server: Server) {
        let bare = server.kind().start(&["--rename-command", "EVAL", "", "--rename-command", "EVALSHA", "", "--rename-command", "CONFIG", ""]);
        let (code, report) = json_and_code(&["doctor", &bare.url()]);
        assert_eq!((code, level(&report, "scripts"), level(&report, "counters")), (Some(0), "warning", "ok"), "{report}");
        assert!(finding(&report, "persistence")["found"].as_str().unwrap().contains("cannot be seen"), "{report}");
    }
}

#[test]
fn several_servers_are_compared_and_one_that_is_down_hides_no_other() {
    let servers = Kind::ALL.map(|kind| kind.start(&[]));
    let down = {
        let server = Server::valkey();
        server.url()
    };
    let urls = [servers[0].url(), servers[1].url()];
    let (code, report) = json_and_code(&["doctor", &urls[0], &urls[1]]);
    assert_eq!(
        (
            code,
            &report["together"][0]["check"],
            &report["together"][0]["level"]
        ),
        (Some(0), &json!("clocks"), &json!("ok")),
        "{report}"
    );

    let (code, report) = json_and_code(&["doctor", &down, &urls[0]]);
    assert_eq!(
        (code, level(&report, "connection"), &report["together"]),
        (Some(2), "problem", &json!([])),
        "{report}"
    );
    assert_eq!(
        report["servers"][1]["findings"][0]["check"],
        json!("version")
    );
    assert_eq!(
        run(["doctor", &down]).code,
        Some(69),
        "there is nothing to say of any server"
    );
}
