//! The account that `docs/acl.md` gives: enough for every verb, and nothing in it can be left out.

use std::path::Path;
use std::time::Duration;

use tallylock::{Applied, Code, Error, blocking::Client};
use tallylock_testkit::{Server, on_each_server};

const TTL: Duration = Duration::from_secs(900);
const PASSWORD: &str = "s3cret-of-the-test";

/// Of these the page says that one can do without them.
const OPTIONAL: [&str; 8] = [
    "+publish",
    "+subscribe",
    "+unsubscribe",
    "+ping",
    "+select",
    "+client|setname",
    "+auth",
    "+hello",
];

on_each_server! {
    fn the_documented_account_is_enough(server: Server) {
        set_account(&server, &rules());
        every_verb(&connect(&server)).unwrap();
        let refused: Vec<redis::Value> = redis::cmd("ACL").arg("LOG").query(&mut server.connection()).unwrap();
        assert_eq!(refused, [], "something was refused on the way");
    }

    fn no_part_of_it_can_be_left_out(server: Server) {
        let rules = rules();
        let needed = rules.iter().filter(|rule| rule.starts_with('+') && !OPTIONAL.contains(&rule.as_str()));
        for left_out in needed {
            redis::cmd("FLUSHALL").exec(&mut server.connection()).unwrap();
            set_account(&server, &without(&rules, &[left_out]));
            let error = every_verb(&connect(&server)).expect_err(left_out);
            let is_refused_inside = error.code() == Code::OutcomeUnknown && error.to_string().contains("script");
            assert!(is_refused_inside || error.code() == Code::Forbidden, "without {left_out}: {error}");
            assert_eq!(keys_without_ttl(&server), Vec::<String>::new(), "without {left_out}");
        }
    }

    /// Without MULTI, what is to be written between MULTI and EXEC would be done command by command.
    fn an_account_without_transactions_changes_nothing_by_them(server: Server) {
        for left_out in ["-multi", "-exec", "-discard", "-watch", "-unwatch"] {
            let rules = ["on", "~*", "&*", "+@all", "-@scripting", left_out].map(str::to_owned);
            set_account(&server, &rules);
            let mut admin = server.connection();
            redis::cmd("SET").arg("session:1").arg("5").arg("PX").arg(60_000).exec(&mut admin).unwrap();
            let client = connect(&server);
            let counter = client.counter("session:1", TTL).unwrap();
            for error in [counter.add(1).unwrap_err(), counter.drain().unwrap_err()] {
                assert!(matches!(error.code(), Code::Forbidden | Code::Unsupported), "{left_out}: {error}");
                assert_eq!(error.applied(), Applied::No, "{left_out}: {error}");
            }
            let text: String = redis::cmd("GET").arg("session:1").query(&mut admin).unwrap();
            let ttl: i64 = redis::cmd("PTTL").arg("session:1").query(&mut admin).unwrap();
            assert!(text == "5" && (1..=60_000).contains(&ttl), "{left_out}: {text} {ttl}");
        }
    }

    fn what_the_page_calls_optional_is(server: Server) {
        let channels: Vec<_> = rules().into_iter().filter(|rule| rule.starts_with('&')).collect();
        let left_out: Vec<&str> = OPTIONAL.into_iter().chain(channels.iter().map(String::as_str)).collect();
        set_account(&server, &without(&rules(), &left_out));
        every_verb(&connect(&server)).unwrap();
    }

    fn a_key_of_others_is_forbidden_and_untouched(server: Server) {
        set_account(&server, &rules());
        redis::cmd("SET").arg("payroll:1").arg("5").arg("PX").arg(60_000).exec(&mut server.connection()).unwrap();
        let client = connect(&server);
        let counter = client.counter("payroll:1", TTL).unwrap();
        let lock = client.lock("payroll:2", TTL).unwrap();
        let errors = [
            counter.add(1).unwrap_err(),
            counter.read().unwrap_err(),
            counter.drain().unwrap_err(),
            counter.finish().unwrap_err(),
            lock.acquire(Duration::ZERO).unwrap_err(),
        ];
        for error in errors {
            assert_eq!((error.code(), error.applied()), (Code::Forbidden, Applied::No), "{error}");
            assert!(error.to_string().contains("payroll:"), "{error}");
        }
        let text: String = redis::cmd("GET").arg("payroll:1").query(&mut server.connection()).unwrap();
        let ttl: i64 = redis::cmd("PTTL").arg("payroll:1").query(&mut server.connection()).unwrap();
        let keys: i64 = redis::cmd("DBSIZE").query(&mut server.connection()).unwrap();
        assert!(text == "5" && (1..=60_000).contains(&ttl) && keys == 1, "{text} {ttl} {keys}");
    }

    fn a_wrong_password_is_forbidden_and_not_shown(server: Server) {
        set_account(&server, &rules());
        let url = format!("redis://billing:not-{PASSWORD}@{}", server.address());
        let error = Client::connect(&url).unwrap_err();
        assert_eq!(error.code(), Code::Forbidden, "{error}");
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error:?}");
    }
}

/// The rules of the line that begins with `ACL SETUSER billing`, without the password.
fn rules() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/acl.md");
    let page = std::fs::read_to_string(page).unwrap();
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("ACL SETUSER billing "))
        .expect("the account on the page");
    line.split(' ')
        .filter(|rule| !rule.starts_with('>'))
        .map(str::to_owned)
        .collect()
}

fn without(rules: &[String], left_out: &[&str]) -> Vec<String> {
    rules
        .iter()
        .filter(|rule| !left_out.contains(&rule.as_str()))
        .cloned()
        .collect()
}

/// Makes the account anew, with these rules and nothing more.
fn set_account(server: &Server, rules: &[String]) {
    let mut connection = server.connection();
    redis::cmd("ACL")
        .arg("DELUSER")
        .arg("billing")
        .exec(&mut connection)
        .unwrap();
    redis::cmd("ACL")
        .arg("SETUSER")
        .arg("billing")
        .arg(format!(">{PASSWORD}"))
        .arg(rules)
        .exec(&mut connection)
        .unwrap();
}

fn connect(server: &Server) -> Client {
    Client::connect(&format!("redis://billing:{PASSWORD}@{}", server.address())).unwrap()
}

/// Calls each verb on keys of the account's own, with what each returns checked; the first error ends it.
fn every_verb(client: &Client) -> Result<(), Error> {
    for (sliding, counter) in [
        (true, client.counter("session:1", TTL)?),
        (false, client.counter("session:{2}", TTL)?.fixed()),
    ] {
        assert_eq!(counter.add(3)?, 3, "sliding: {sliding}");
        assert_eq!(counter.add(2)?, 5, "sliding: {sliding}");
        assert_eq!(counter.read()?, Some(5));
        let value = client.value(if sliding { "session:1" } else { "session:{2}" })?;
        assert_eq!(value.get()?, Some(b"5".to_vec()));
        assert!(value.replace_if_present("6", TTL)?);
        assert!(value.touch(TTL)?);
        assert!(value.compare_and_set("6", "7", TTL)?);
        assert_eq!(counter.drain()?, Some(7));
        assert_eq!(counter.finish()?, Some(0));
    }
    let lock = client.lock("session:lock", TTL)?;
    let lease = lock.acquire(Duration::ZERO)?;
    assert_eq!(
        lock.clone().acquire(Duration::ZERO).unwrap_err().code(),
        Code::Busy
    );
    lease.extend(TTL)?;
    let guarded = client.guarded("session:text")?;
    guarded.set("text", lease.fence(), TTL)?;
    assert!(guarded.delete(lease.fence())?);
    let holder = lock.inspect()?.expect("a holder");
    assert!(lock.steal(&holder.token, "it hangs")?.is_some());
    lock.clone().acquire(Duration::ZERO)?.release()
}

fn keys_without_ttl(server: &Server) -> Vec<String> {
    let mut connection = server.connection();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    let is_without_ttl = |key: &String| {
        let ttl: i64 = redis::cmd("PTTL").arg(key).query(&mut connection).unwrap();
        ttl == -1
    };
    keys.into_iter().filter(is_without_ttl).collect()
}
