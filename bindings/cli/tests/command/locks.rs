//! `tallylock lock`.

use std::time::Duration;

use serde_json::{Value, json};
use tallylock::blocking::Client;
use tallylock::{Options, Owner};
use tallylock_testkit::{Server, on_each_server};

use crate::run::{TTL, json, json_and_code, plant, run};

on_each_server! {
    fn held_locks_are_listed_with_holder_and_fence(server: Server) {
        let options = Options::new(&server.url()).unwrap().owner(Owner::Label("biller-7".into())).unwrap();
        let client = Client::connect_with(options).unwrap();
        let held = client.lock("invoice:42", TTL).unwrap().acquire(Duration::ZERO).unwrap();
        let tagged = client.lock("{invoice}:43", TTL).unwrap().acquire(Duration::ZERO).unwrap();
        client.lock("invoice:free", TTL).unwrap().acquire(Duration::ZERO).unwrap().release().unwrap();
        // One that another library holds where tallylock was before.
        client.lock("invoice:theirs", TTL).unwrap().acquire(Duration::ZERO).unwrap().release().unwrap();
        plant(&server, "invoice:theirs", "their-token");
        plant(&server, "invoice:no-lock", "text");
        // What is no text any more is no lock, and hides no other.
        client.lock("invoice:list", TTL).unwrap().acquire(Duration::ZERO).unwrap().release().unwrap();
        redis::cmd("LPUSH").arg("invoice:list").arg("x").exec(&mut server.connection()).unwrap();

        let spoiled = client.lock("invoice:spoiled", TTL).unwrap().acquire(Duration::ZERO).unwrap();
        redis::pipe().cmd("DEL").arg("invoice:spoiled{invoice:spoiled}:tlu1:fence")
            .cmd("LPUSH").arg("invoice:spoiled{invoice:spoiled}:tlu1:fence").arg("x").exec(&mut server.connection()).unwrap();

        let listed = json(&["lock", "list", &server.url()]);
        let keys: Vec<&Value> = listed.as_array().unwrap().iter().map(|lock| &lock["key"]).collect();
        assert_eq!(keys, ["invoice:42", "invoice:spoiled", "invoice:theirs", "{invoice}:43"]);
        assert_eq!((&listed[0]["holder"], &listed[0]["token"]), (&json!("biller-7"), &json!("tallylock")));
        assert_eq!(listed[0]["fence"], json!(held.fence().to_string()));
        assert!((1..=900_000).contains(&listed[0]["remaining_ms"].as_i64().unwrap()));
        assert_eq!((&listed[1]["holder"], &listed[1]["fence"]), (&json!("biller-7"), &json!(null)));
        assert_eq!((&listed[2]["holder"], &listed[2]["token"], &listed[2]["remaining_ms"]), (&json!(null), &json!("other"), &json!(null)));
        let some = json(&["lock", "list", &server.url(), "--match", "{*"]);
        assert_eq!((some.as_array().unwrap().len(), &some[0]["fence"]), (1, &json!(tagged.fence().to_string())));

        let told = run(["lock", "list", &server.url()]);
        assert_eq!(told.stdout.lines().count(), 5, "{told:?}");
        assert!(told.stdout.contains("biller-7") && told.stdout.contains("without a TTL"), "{told:?}");
        let token: String = redis::cmd("GET").arg("invoice:42").query(&mut server.connection()).unwrap();
        assert!(!told.stdout.contains(&token[..32]), "a token is the right to release");

        let shown = run(["lock", "show", &server.url(), "invoice:42"]);
        let fence = held.fence().to_string();
        assert!(shown.code == Some(0) && shown.stdout.contains("biller-7") && shown.stdout.contains(&fence), "{shown:?}");
        assert_eq!(json(&["lock", "show", &server.url(), "invoice:42"])["key"], json!("invoice:42"));
        assert_eq!(run(["lock", "show", &server.url(), "invoice:free"]).code, Some(1));
        assert_eq!(json_and_code(&["lock", "show", &server.url(), "invoice:free"]), (Some(1), json!(null)));
        spoiled.release().unwrap();
    }

    fn the_token_is_shown_only_if_asked_for_and_stolen_from(server: Server) {
        let options = Options::new(&server.url()).unwrap().owner(Owner::Label("biller-7".into())).unwrap();
        let client = Client::connect_with(options).unwrap();
        let lock = client.lock("invoice:42", TTL).unwrap();
        let lease = lock.acquire(Duration::ZERO).unwrap();
        let token: String = redis::cmd("GET").arg("invoice:42").query(&mut server.connection()).unwrap();
        let url = server.url();
        let shown = run(["lock", "show", &url, "invoice:42"]).stdout + &json(&["lock", "show", &url, "invoice:42"]).to_string();
        assert!(!shown.contains(&token[..32]), "{shown}");
        assert!(run(["lock", "show", &url, "invoice:42", "--token"]).stdout.contains(&token));
        assert_eq!(json(&["lock", "show", &url, "invoice:42", "--token"])["expect"], json!(token));

        let steal = |token: &str, reason: &str| run(["lock", "steal", &url, "invoice:42", "--expect", token, "--reason", reason, "--yes"]);
        assert_eq!(steal(&token, " ").code, Some(64));
        let other = steal("another", "it hangs");
        assert!(other.code == Some(1) && other.stdout.contains("does not hold"), "{other:?}");
        lease.extend(TTL).unwrap();
        let stolen = steal(&token, "it hangs");
        assert!(stolen.code == Some(0) && stolen.stdout.contains("biller-7") && stolen.stdout.contains("it hangs"), "{stolen:?}");
        assert!(!stolen.stdout.contains(&token[..32]), "{stolen:?}");
        assert_eq!(lock.inspect().unwrap(), None);
        // The handle does not know yet that its lease was stolen.
        assert!(lock.clone().acquire(Duration::ZERO).unwrap().fence() > lease.fence() + 1);
        assert_eq!(steal(&token, "it hangs").code, Some(1));
    }

    fn a_token_of_any_bytes_can_be_stolen_from(server: Server) {
        let token = b"a\\x\xff\n".as_slice();
        redis::cmd("SET").arg("theirs").arg(token).exec(&mut server.connection()).unwrap();
        let shown = json(&["lock", "show", &server.url(), "theirs", "--token"]);
        let shown = shown["expect"].as_str().unwrap();
        let stolen = run(["lock", "steal", &server.url(), "theirs", "--expect", shown, "--reason", "it hangs", "--yes"]);
        assert!(stolen.code == Some(0) && stolen.stdout.contains("another library"), "{stolen:?}");
    }
}
