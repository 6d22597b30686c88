//! A password is never shown, wherever it was put and whatever goes wrong.

use std::process::Stdio;

use tallylock_testkit::Kind;

use crate::run::{Run, command, run};

const PASSWORD: &str = "s3cret-Pa55";

fn assert_hidden(run: &Run) {
    assert!(
        !run.stdout.contains(PASSWORD) && !run.stderr.contains(PASSWORD),
        "{run:?}"
    );
}

#[test]
fn in_a_url_in_its_place() {
    for kind in Kind::ALL {
        for arguments in [
            vec!["--requirepass", PASSWORD],
            vec![],
            vec!["--rename-command", "AUTH", ""],
        ] {
            let server = kind.start(&arguments);
            let url = format!("redis://:{PASSWORD}@{}", server.address());
            let key = format!("redis://:x{PASSWORD}@{}", server.address());
            for url in [&url, &key] {
                for words in [
                    vec!["audit"],
                    vec!["doctor"],
                    vec!["lock", "list"],
                    vec!["watch", "--for", "10ms"],
                ] {
                    assert_hidden(&run(words.into_iter().chain([url.as_str()])));
                }
                assert_hidden(&run(["counter", "show", url, "session:1"]));
                let from_environment = |words: &[&str]| {
                    command(words)
                        .env("TALLYLOCK_REDIS_URL", url)
                        .output()
                        .unwrap()
                        .into()
                };
                for words in [
                    &["doctor", "--json"][..],
                    &["audit", "--help"],
                    &["--help"],
                    &["audit", "--wrong"],
                ] {
                    assert_hidden(&from_environment(words));
                }
            }
        }
    }
}

#[test]
fn in_a_wrong_place() {
    let url = format!("redis://user:{PASSWORD}@127.0.0.1:1");
    let broken = format!("redis://user:{PASSWORD}@127.0.0.1:port");
    let equals = format!("--url={url}");
    let option = format!("--{url}");
    let short = format!("-{PASSWORD}");
    for arguments in [
        vec![url.as_str()],
        vec![&url, "audit"],
        vec!["audit", &broken],
        vec!["audit", &equals],
        vec!["audit", &option],
        vec!["audit", &short],
        vec!["audit", "redis://user:", PASSWORD],
        vec!["audit", PASSWORD],
        vec!["audit", "--near", &url],
        vec!["audit", "--near", PASSWORD],
        vec!["audit", "--json=", &url],
        vec![
            "audit", "--match", "*", "--repair", "--ttl", "1m", "--rate", PASSWORD,
        ],
        vec!["audit", "--timeout", PASSWORD],
        vec!["audit", &format!("--yes={PASSWORD}")],
        vec!["lock", &url],
        vec!["lock", "show", &url],
        vec!["lock", "show", "session:1", &url],
        vec!["counter", "drain", &url, "--yes"],
        vec!["doctor", "--prefix", &url, "redis://127.0.0.1:1"],
        vec!["doctor", &broken, &url],
    ] {
        let ended = run(&arguments);
        assert_hidden(&ended);
        assert!(
            matches!(ended.code, Some(64 | 69)),
            "{arguments:?} {ended:?}"
        );
    }
}

/// Not even as a part of a key that was left out.
#[test]
fn in_the_environment_and_as_the_key() {
    let url = format!("redis://user:{PASSWORD}@127.0.0.1:1");
    let output = command(["lock", "show", &url])
        .env("TALLYLOCK_REDIS_URL", &url)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ended: Run = output.into();
    assert_hidden(&ended);
    assert_eq!(ended.code, Some(64), "{ended:?}");
}
