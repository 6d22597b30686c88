//! A wait ends when it is over, however silent the server is and whoever waits before.

#[path = "waiting/face.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod face;
mod in_time;

use std::time::Duration;

use face::Face;
use in_time::{TIMEOUT, in_time};
use tallylock::{Code, Error};
use tallylock_testkit::{Server, on_each_server};

/// Outlasts the tests.
const LONG: Duration = Duration::from_secs(60);

on_each_server! {
    fn a_wait_for_a_lock_that_stays_held_ends_in_time(server: Server) {
        for face in Face::all(&server.url()) {
            let held = face.acquire("l", LONG).unwrap();
            assert_eq!(in_time(|| face.acquire("l", TIMEOUT)).code(), Code::Busy);
            held.release();
        }
    }

    fn a_wait_that_a_silent_server_outlasts_ends_in_time(server: Server) {
        for face in Face::all(&server.url()) {
            server.pause();
            assert_silent(&in_time(|| face.acquire("l", TIMEOUT)));
            server.resume();
        }
    }

    fn a_wait_behind_one_who_was_never_answered_ends_in_time_and_is_no_busy_lock(server: Server) {
        for face in Face::all(&server.url()) {
            server.pause();
            let first = face.clone().in_background("l", Duration::from_secs(30));
            assert_silent(&in_time(|| face.acquire("l", TIMEOUT)));
            server.resume();
            first.join().unwrap().unwrap().release();
        }
    }

    fn a_wait_during_which_the_server_falls_silent_ends_in_time(server: Server) {
        for face in Face::all(&server.url()) {
            let held = face.acquire("l", LONG).unwrap();
            let listens = |wait: Duration| {
                let first = face.clone().in_background("l", wait);
                let channel = "l{l}:tlu1:released";
                while redis::cmd("PUBSUB").arg(&["NUMSUB", channel]).query::<(String, i64)>(&mut server.connection()).unwrap().1 == 0 {
                    std::thread::yield_now();
                }
                first
            };
            let first = listens(LONG);
            server.pause();
            let behind = in_time(|| face.acquire("l", TIMEOUT));
            assert_eq!(behind.code(), Code::Busy, "it was when last asked for: {behind}");
            server.resume();
            held.release();
            first.join().unwrap().unwrap().release();
        }
    }
}

/// A silent server is no busy lock.
fn assert_silent(error: &Error) {
    let is_silent = matches!(error.code(), Code::Timeout | Code::Unavailable);
    assert!(is_silent, "{error}");
}
