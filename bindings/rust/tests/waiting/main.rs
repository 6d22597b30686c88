//! Waiting for a lock on real servers: who is told of a release, what is left afterwards, and what happens when nothing is told.

mod face;

use std::thread;
use std::time::{Duration, Instant};

use face::{Face, Held, in_futures};
use redis::Commands as _;
use tallylock::{Client, Code};
use tallylock_testkit::{Server, on_each_server};

/// How long a busy machine may take for what is done in a moment.
const LONG: Duration = Duration::from_secs(30);
const TTL: Duration = Duration::from_secs(60);
const CHANNEL: &str = "l{l}:tlu1:released";

on_each_server! {
    fn a_release_wakes_the_waiter(server: Server) {
        for face in Face::all(&server.url()) {
            let mut times = Vec::new();
            for _ in 0..20 {
                let held = face.acquire("l", LONG).unwrap();
                let waiter = listening(&server, &face, LONG);
                let begun = Instant::now();
                held.release();
                let granted = waiter.join().unwrap().unwrap();
                times.push(begun.elapsed());
                granted.release();
            }
            assert_told(&times);
        }
    }

    fn a_steal_by_another_client_wakes_the_waiter_too(server: Server) {
        let [face, other] = Face::all(&server.url());
        let mut times = Vec::new();
        for _ in 0..10 {
            let _hangs = other.acquire("l", LONG).unwrap();
            let waiter = listening(&server, &face, LONG);
            let begun = Instant::now();
            other.steal("l");
            let granted = waiter.join().unwrap().unwrap();
            times.push(begun.elapsed());
            granted.release();
        }
        assert_told(&times);
    }

    fn nothing_is_left_subscribed(server: Server) {
        for face in Face::all(&server.url()) {
            let held = face.acquire("l", LONG).unwrap();
            assert_eq!(subscribers(&server), 0, "nobody waits");
            assert_eq!(waiting(&face, Duration::from_millis(300)).join().unwrap().unwrap_err().code(), Code::Busy);
            await_listeners(&server, 0);
            let waiter = listening(&server, &face, LONG);
            held.release();
            let granted = waiter.join().unwrap().unwrap();
            await_listeners(&server, 0);
            assert_eq!(subscribers(&server), 1, "the connection is kept for a while");
            face.close();
            await_subscribers(&server, 0);
            drop(granted);
            let _: i64 = server.connection().del("l").unwrap();
        }
    }

    fn one_connection_listens_for_all_waiters(server: Server) {
        for face in Face::all(&server.url()) {
            let held: Vec<_> = ["l", "m", "n"].map(|key| face.acquire(key, LONG).unwrap()).into();
            let waiters: Vec<_> = ["l", "m", "n", "l", "m", "n"].map(|key| passing(&face, key)).into();
            await_channels(&server, 3);
            assert_eq!(subscribers(&server), 1);
            held.into_iter().for_each(Held::release);
            for waiter in waiters {
                waiter.join().unwrap().unwrap();
            }
            await_channels(&server, 0);
            face.close();
        }
    }

    fn a_connection_that_is_killed_is_opened_again(server: Server) {
        for face in Face::all(&server.url()) {
            let held = face.acquire("l", LONG).unwrap();
            let waiter = waiting(&face, LONG);
            for _ in 0..5 {
                await_listeners(&server, 1);
                kill_subscribers(&server);
            }
            await_listeners(&server, 1);
            held.release();
            waiter.join().unwrap().unwrap().release();
        }
    }

    fn a_release_that_nobody_hears_is_found(server: Server) {
        for face in Face::all(&server.url()) {
            let (mut unheard, mut untold) = (Vec::new(), Vec::new());
            for _ in 0..5 {
                let held = face.acquire("l", LONG).unwrap();
                let waiter = listening(&server, &face, LONG);
                let begun = Instant::now();
                kill_subscribers(&server);
                held.release();
                waiter.join().unwrap().unwrap().release();
                unheard.push(begun.elapsed());
                // Of another library's release nothing is told at all.
                let _: () = server.connection().set_ex("l", "another's", 60).unwrap();
                let waiter = listening(&server, &face, LONG);
                let begun = Instant::now();
                let _: () = server.connection().del("l").unwrap();
                waiter.join().unwrap().unwrap().release();
                untold.push(begun.elapsed());
            }
            assert_found(&unheard);
            assert_found(&untold);
        }
    }

    fn what_is_published_for_no_reason_grants_nothing(server: Server) {
        for face in Face::all(&server.url()) {
            let held = face.acquire("l", LONG).unwrap();
            let waiter = listening(&server, &face, Duration::from_secs(2));
            for _ in 0..50 {
                let _: i64 = server.connection().publish(CHANNEL, "released").unwrap();
                held.ensure();
            }
            assert_eq!(waiter.join().unwrap().unwrap_err().code(), Code::Busy);
            held.release();
        }
    }

    fn forgotten_scripts_keep_nobody_waiting(server: Server) {
        for face in Face::all(&server.url()) {
            for _ in 0..5 {
                let held = face.acquire("l", LONG).unwrap();
                let waiter = listening(&server, &face, LONG);
                let _: () = redis::cmd("SCRIPT").arg("FLUSH").query(&mut server.connection()).unwrap();
                held.release();
                waiter.join().unwrap().unwrap().release();
            }
        }
    }

    fn an_account_without_channels_waits_all_the_same(server: Server) {
        for forbidden in [["-subscribe"].as_slice(), &["resetchannels"]] {
            let rules = ["on", ">secret", "~*", "&*", "+@all"].into_iter().chain(forbidden.iter().copied());
            let rules: Vec<&str> = rules.collect();
            redis::cmd("ACL").arg("SETUSER").arg("waits").arg(&rules).exec(&mut server.connection()).unwrap();
            for face in Face::all(&format!("redis://waits:secret@{}", server.address())) {
                let held = face.acquire("l", LONG).unwrap();
                let waiter = waiting(&face, LONG);
                await_refusals(&server);
                held.release();
                waiter.join().unwrap().unwrap().release();
                assert_eq!(listeners(&server), 0);
                face.close();
            }
            redis::cmd("ACL").arg("DELUSER").arg("waits").exec(&mut server.connection()).unwrap();
        }
    }

    fn without_scripts_a_release_wakes_too(server: Server) {
        for face in Face::without_scripts(&server.url()) {
            let mut times = Vec::new();
            for _ in 0..10 {
                let held = face.acquire("l", LONG).unwrap();
                let waiter = listening(&server, &face, LONG);
                let begun = Instant::now();
                held.release();
                let granted = waiter.join().unwrap().unwrap();
                times.push(begun.elapsed());
                granted.release();
            }
            assert_told(&times);
        }
    }

    fn the_waiters_of_a_client_have_it_in_the_order_in_which_they_came(server: Server) {
        in_futures(&server.url(), async |client| {
            let lock = client.lock("l", TTL).unwrap();
            let held = lock.clone().acquire(LONG).await.unwrap();
            let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
            for number in 0..20 {
                let (lock, tell) = (lock.clone(), tell.clone());
                tokio::spawn(async move {
                    let lease = lock.acquire(LONG).await.unwrap();
                    tell.send(number).unwrap();
                    lease.release().await.unwrap();
                });
                // On this one thread it runs now, and stands in line.
                tokio::task::yield_now().await;
            }
            held.release().await.unwrap();
            for number in 0..20 {
                assert_eq!(told.recv().await, Some(number));
            }
        });
    }

    fn a_waiter_that_is_dropped_lets_the_next_one_in(server: Server) {
        in_futures(&server.url(), async |client| {
            for dropped in [0, 1, 2].into_iter().cycle().take(12) {
                let lock = client.lock("l", TTL).unwrap();
                let held = lock.clone().acquire(LONG).await.unwrap();
                let waiters = [0, 1, 2].map(|_| {
                    let lock = lock.clone();
                    tokio::spawn(async move { lock.acquire(LONG).await.unwrap().release().await.unwrap() })
                });
                tokio::task::yield_now().await;
                waiters[dropped].abort();
                held.release().await.unwrap();
                for (number, waiter) in waiters.into_iter().enumerate() {
                    assert_eq!(waiter.await.is_err(), number == dropped);
                }
            }
        });
    }

    fn a_waiter_whose_time_is_over_lets_the_next_one_in(server: Server) {
        for face in Face::all(&server.url()) {
            let held = face.acquire("l", LONG).unwrap();
            let hurried = listening(&server, &face, Duration::from_secs(3));
            let patient: Vec<_> = (0..3).map(|_| passing(&face, "l")).collect();
            let behind = face.acquire("l", Duration::from_millis(100)).map(drop).unwrap_err();
            assert_eq!(behind.code(), Code::Busy, "{behind}");
            assert_eq!(hurried.join().unwrap().unwrap_err().code(), Code::Busy);
            held.release();
            for waiter in patient {
                waiter.join().unwrap().unwrap();
            }
            await_listeners(&server, 0);
        }
    }
}

#[test]
fn in_memory_a_release_wakes_too() {
    let name = format!("memory://waiting-{}", std::process::id());
    for face in Face::all(&name) {
        let held = face.acquire("l", LONG).unwrap();
        let waiters: Vec<_> = (0..8)
            .map(|_| {
                let face = face.clone();
                thread::spawn(move || {
                    face.acquire("l", TTL * 1_000_000)
                        .unwrap()
                        .release_or_was_lost();
                })
            })
            .collect();
        held.release_or_was_lost();
        for waiter in waiters {
            waiter.join().unwrap();
        }
    }
}

#[tokio::test]
async fn who_does_not_want_to_wait_stands_in_no_line() {
    let client = Client::connect("memory://").await.unwrap();
    let lock = client.lock("l", TTL).unwrap();
    let _lease = lock.acquire(Duration::ZERO).await.unwrap();
    let other = lock.clone().acquire(Duration::ZERO).await;
    assert_eq!(other.unwrap_err().code(), Code::Busy);
}

/// Waits for the lock in the background.
fn waiting(face: &Face, wait: Duration) -> thread::JoinHandle<Result<Held, tallylock::Error>> {
    face.clone().in_background("l", wait)
}

/// The same, once it listens for releases, which no earlier one does any more, and has asked again since: on a busy machine that
/// is long after, and a release in between would be found even if nothing is told.
fn listening(
    server: &Server,
    face: &Face,
    wait: Duration,
) -> thread::JoinHandle<Result<Held, tallylock::Error>> {
    await_listeners(server, 0);
    let mut monitor = server.connection();
    redis::cmd("MONITOR").exec(&mut monitor).unwrap();
    let waiter = waiting(face, wait);
    await_listeners(server, 1);
    for commands in [["\"SUBSCRIBE\""].as_slice(), &["\"EVALSHA\"", "\"WATCH\""]] {
        await_one_of(&mut monitor, commands);
    }
    waiter
}

/// Waits until somebody sends one of these to the server. It comes: who waits looks again by itself too.
fn await_one_of(monitor: &mut redis::Connection, commands: &[&str]) {
    loop {
        let sent: String = redis::from_redis_value(monitor.recv_response().unwrap()).unwrap();
        if commands.iter().any(|command| sent.contains(command)) {
            return;
        }
    }
}

/// Takes a lock in the background, and gives it back.
fn passing(face: &Face, key: &'static str) -> thread::JoinHandle<Result<(), tallylock::Error>> {
    let face = face.clone();
    thread::spawn(move || face.acquire(key, LONG).map(Held::release))
}

/// Who is not told looks by itself, half a second after it last asked at the earliest, and it asked just before the release. Now
/// and then a busy machine is as slow as that; it is hardly ever faster.
fn assert_told(times: &[Duration]) {
    let told = times
        .iter()
        .filter(|time| **time < Duration::from_millis(400));
    assert!(4 * told.count() >= times.len(), "{times:?}");
}

/// Who looks by itself does so every few seconds at the least, unless the machine is busy.
fn assert_found(times: &[Duration]) {
    let fastest = times.iter().min().expect("a time");
    assert!(*fastest < Duration::from_secs(5), "{times:?}");
}

/// How many connections listen for releases of the lock.
fn listeners(server: &Server) -> i64 {
    let counts: (String, i64) = redis::cmd("PUBSUB")
        .arg(&["NUMSUB", CHANNEL])
        .query(&mut server.connection())
        .unwrap();
    counts.1
}

fn await_listeners(server: &Server, wanted: i64) {
    awaited("listeners", wanted, || listeners(server));
}

fn await_channels(server: &Server, wanted: i64) {
    awaited("channels", wanted, || {
        let channels: Vec<String> = redis::cmd("PUBSUB")
            .arg("CHANNELS")
            .query(&mut server.connection())
            .unwrap();
        i64::try_from(channels.len()).unwrap()
    });
}

/// How many connections are there that have subscribed to something: they have no other command last.
fn subscribers(server: &Server) -> i64 {
    let clients: String = redis::cmd("CLIENT")
        .arg("LIST")
        .query(&mut server.connection())
        .unwrap();
    let count = clients
        .lines()
        .filter(|line| line.contains("cmd=subscribe") || line.contains("cmd=unsubscribe"));
    i64::try_from(count.count()).unwrap()
}

fn await_subscribers(server: &Server, wanted: i64) {
    awaited("subscribers", wanted, || subscribers(server));
}

/// Waits until the account was refused something, and forgets it.
fn await_refusals(server: &Server) {
    awaited("refusals", true, || {
        let log: Vec<redis::Value> = redis::cmd("ACL")
            .arg("LOG")
            .query(&mut server.connection())
            .unwrap();
        !log.is_empty()
    });
    redis::cmd("ACL")
        .arg(&["LOG", "RESET"])
        .exec(&mut server.connection())
        .unwrap();
}

fn kill_subscribers(server: &Server) {
    let killed: i64 = redis::cmd("CLIENT")
        .arg(&["KILL", "TYPE", "pubsub"])
        .query(&mut server.connection())
        .unwrap();
    assert_eq!(killed, 1);
}

fn awaited<T: Copy + PartialEq + std::fmt::Debug>(
    what: &str,
    wanted: T,
    mut look: impl FnMut() -> T,
) {
    let end = Instant::now() + LONG;
    loop {
        let found = look();
        if found == wanted {
            return;
        }
        assert!(Instant::now() < end, "{what}: {found:?}, not {wanted:?}");
        thread::sleep(Duration::from_millis(2));
    }
}
