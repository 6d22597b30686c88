//! Waiting for a lock with notifications: told, lost, spurious, too early, too late. Nothing of it decides an outcome.

mod scenario;

use scenario::{World, key, lock, seed, settings, ttl};
use tallylock_core::error::Error;
use tallylock_core::lock::{Acquire, Grant, Lock, Release};
use tallylock_core::settings::Settings;
use tallylock_core::step::{Call, Event, Next, Notice, Operation, Step};
use tallylock_core::time::{Instant, Wait};
use tallylock_core::token::Seed;

const KEY: &str = "invoice:42";
const HEARS: Event = Event::Notified(Notice::Heard);
const HEARS_WITH_OTHERS: Event = Event::Notified(Notice::Contended);
const IS_DEAF: Event = Event::Notified(Notice::Deaf);
const IS_FIRST: Event = Event::Notified(Notice::Forward);

type Progress = Step<Result<Grant, Error>>;

fn wait(millis: u32) -> Wait {
    Wait::from_millis_f64(f64::from(millis)).unwrap()
}

/// A waiter and the server, stepped by hand.
struct Scene {
    world: World,
    acquire: Acquire,
    step: Progress,
    asked: usize,
}

impl Scene {
    /// Another holds the lock for so long; the waiter has asked once, and was told so.
    fn held_for(millis: i64, longest: Wait) -> Self {
        let mut scene = Self::begun(millis, longest, Acquire::start);
        scene.answer();
        scene
    }

    fn begun(
        millis: i64,
        longest: Wait,
        start: impl FnOnce(Lock, Wait, &Settings, Seed, Instant) -> (Acquire, Progress),
    ) -> Self {
        let mut world = World::new([]);
        // The script is known, so that a question is one call.
        let free = Acquire::start(lock(1_000), Wait::NONE, &settings(), seed(9), at(0));
        world.run(free, None).unwrap();
        world
            .memory
            .put(KEY.as_bytes(), b"another's", Some(ttl(millis)));
        let now = world.memory.now();
        let (acquire, step) = start(lock(1_000), longest, &settings(), seed(1), now);
        Self {
            world,
            acquire,
            step,
            asked: 0,
        }
    }

    /// Has the server answer what was sent.
    fn answer(&mut self) {
        for call in std::mem::take(&mut self.step.calls) {
            self.asked += 1;
            let outcome = self.world.memory.execute(&call);
            self.tell(Event::Replied {
                call: call.id,
                outcome,
            });
        }
    }

    fn tell(&mut self, event: Event) {
        let sent: Vec<Call> = std::mem::take(&mut self.step.calls);
        self.step = self.acquire.handle(self.world.memory.now(), event);
        self.step.calls.splice(0..0, sent);
    }

    /// Tells it something, and has the server answer if that makes it ask.
    fn tell_and_answer(&mut self, event: Event) {
        self.tell(event);
        self.answer();
    }

    /// Until when it waits, from now on, in milliseconds.
    fn patience(&self) -> u64 {
        match &self.step.next {
            Next::WaitUntil(until) => until.since(self.world.memory.now()),
            Next::Done(result) => panic!("it is over: {result:?}"),
        }
    }

    /// Lets it wait as long as it wants to, and wakes it.
    fn sleep(&mut self) {
        self.world.memory.advance(self.patience());
        self.tell_and_answer(Event::Woke);
    }

    fn release(&mut self) {
        self.world.memory.remove(KEY.as_bytes());
    }

    fn result(&self) -> &Result<Grant, Error> {
        match &self.step.next {
            Next::Done(result) => result,
            Next::WaitUntil(until) => panic!("it waits until {until:?}"),
        }
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn who_is_notified_of_a_release_has_the_lock_at_once() {
    let mut scene = Scene::held_for(60_000, wait(30_000));
    scene.tell_and_answer(HEARS);
    let now = scene.world.memory.now();
    scene.release();
    scene.tell_and_answer(HEARS);
    scene.result().as_ref().unwrap();
    assert_eq!((scene.world.memory.now(), scene.asked), (now, 3));
}

#[test]
fn a_release_between_the_try_and_the_subscription_is_found_when_that_stands() {
    let mut scene = Scene::held_for(60_000, wait(30_000));
    scene.release();
    assert_eq!(scene.step.calls, [], "nobody was told");
    scene.tell_and_answer(HEARS);
    scene.result().as_ref().unwrap();
}

#[test]
fn a_notice_that_overtakes_an_answer_is_not_lost() {
    let mut scene = Scene::held_for(60_000, wait(30_000));
    scene.tell(HEARS);
    let [call] = std::mem::take(&mut scene.step.calls).try_into().unwrap();
    let held = scene.world.memory.execute(&call);
    scene.release();
    scene.tell(HEARS);
    assert_eq!(scene.step.calls, [], "one question at a time");
    scene.tell(Event::Replied {
        call: call.id,
        outcome: held,
    });
    scene.answer();
    scene.result().as_ref().unwrap();
}

#[test]
fn a_lost_notice_costs_a_second_at_the_most() {
    for n in 0..20 {
        let mut scene = Scene::held_for(60_000, wait(30_000));
        scene.tell_and_answer(HEARS);
        for _ in 0..n {
            scene.sleep();
        }
        scene.release();
        assert!(
            (500..=1_000).contains(&scene.patience()),
            "{}",
            scene.patience()
        );
        scene.sleep();
        scene.result().as_ref().unwrap();
    }
}

#[test]
fn who_hears_asks_seldom_and_who_is_deaf_asks_often() {
    let mut scene = Scene::held_for(60_000, wait(30_000));
    let mut asked = |event: Event| {
        scene.tell_and_answer(event);
        let (before, end) = (scene.asked, scene.world.memory.now().plus(5_000));
        while scene.world.memory.now() < end {
            scene.sleep();
        }
        scene.asked - before
    };
    assert!((5..=10).contains(&asked(HEARS)));
    assert!((15..=40).contains(&asked(IS_DEAF)));
    assert!((5..=10).contains(&asked(HEARS)));
}

#[test]
fn a_spurious_notice_is_one_question_and_the_wait_goes_on() {
    let mut scene = Scene::held_for(60_000, wait(30_000));
    for n in 1..=50 {
        scene.tell_and_answer(HEARS);
        assert_eq!(scene.asked, 1 + n);
        assert!(scene.patience() >= 500, "it does not spin");
    }
    // Told while it asks, it asks once more.
    scene.tell(HEARS);
    let [call] = std::mem::take(&mut scene.step.calls).try_into().unwrap();
    scene.tell(HEARS);
    let outcome = scene.world.memory.execute(&call);
    let call = call.id;
    scene.tell_and_answer(Event::Replied { call, outcome });
    assert_eq!(scene.asked, 52);
    assert!(scene.patience() >= 500 && scene.step.calls.is_empty());
    let end = scene.world.memory.now().plus(30_000);
    while scene.world.memory.now() < end {
        scene.sleep();
    }
    assert_eq!(scene.result().as_ref().unwrap_err().code().as_str(), "busy");
    assert_eq!(scene.world.memory.now(), end, "and ends when it was to end");
}

#[test]
fn who_hears_looks_when_the_holders_time_is_over() {
    let mut scene = Scene::held_for(300, wait(30_000));
    scene.tell_and_answer(HEARS);
    assert_eq!(scene.patience(), 301);
    scene.sleep();
    scene.result().as_ref().unwrap();
}

#[test]
fn a_notice_at_the_end_of_the_wait_changes_nothing() {
    let mut scene = Scene::held_for(60_000, wait(700));
    scene.tell_and_answer(HEARS);
    scene.release();
    scene.world.memory.advance(700);
    scene.tell(HEARS);
    assert_eq!(scene.step.calls, []);
    assert_eq!(scene.result().as_ref().unwrap_err().code().as_str(), "busy");
}

#[test]
fn a_notice_while_a_lost_answer_is_waited_out_sends_nothing_twice() {
    let mut scene = Scene::held_for(60_000, wait(30_000));
    scene.tell(HEARS);
    let [call] = std::mem::take(&mut scene.step.calls).try_into().unwrap();
    scene.world.memory.lose_next_reply();
    let lost = scene.world.memory.execute(&call);
    scene.tell(Event::Replied {
        call: call.id,
        outcome: lost,
    });
    scene.tell(HEARS);
    assert_eq!(scene.step.calls, []);
    assert!(scene.patience() <= 16);
}

#[test]
fn who_stands_behind_others_sends_nothing_before_it_is_notified() {
    let mut scene = Scene::begun(60_000, wait(30_000), Acquire::start_behind);
    assert!(scene.acquire.is_behind() && scene.step.calls.is_empty());
    assert_eq!(scene.patience(), 30_000);
    scene.world.memory.advance(20_000);
    scene.tell_and_answer(Event::Woke);
    assert_eq!((scene.asked, scene.patience()), (0, 10_000));
    scene.tell_and_answer(HEARS);
    assert_eq!(scene.asked, 1);
    assert_eq!(scene.acquire.denial().unwrap().code().as_str(), "busy");
    scene.release();
    scene.tell_and_answer(HEARS);
    scene.result().as_ref().unwrap();
}

#[test]
fn who_has_come_forward_asks_when_it_hears_something_or_after_a_while() {
    let mut scene = Scene::begun(60_000, wait(30_000), Acquire::start_behind);
    scene.tell_and_answer(IS_FIRST);
    assert_eq!(scene.asked, 0);
    let patience = scene.patience();
    assert!((500..=1_000).contains(&patience), "{patience}");
    scene.world.memory.advance(100);
    scene.tell_and_answer(IS_FIRST);
    assert!(
        scene.patience() < patience,
        "said again it does not wait longer"
    );
    scene.sleep();
    assert_eq!(scene.asked, 1);
    scene.release();
    scene.tell_and_answer(HEARS);
    scene.result().as_ref().unwrap();
    let mut scene = Scene::begun(60_000, wait(30_000), Acquire::start_behind);
    scene.tell_and_answer(IS_DEAF);
    assert_eq!(scene.asked, 1, "nobody will tell it");
}

#[test]
fn who_has_just_come_forward_lets_those_of_other_clients_go_first_who_were_denied_before() {
    let patience = |denials: usize| {
        let mut scene = Scene::begun(60_000, wait(30_000), Acquire::start_behind);
        for _ in 0..denials {
            scene.tell_and_answer(HEARS);
        }
        scene.tell(HEARS_WITH_OTHERS);
        match scene.step.calls.len() {
            0 => (scene.patience(), 0),
            asked => (0, asked),
        }
    };
    let patient: Vec<_> = [0, 1, 3, 7, 16].map(patience).into();
    let (longest, asked): (Vec<_>, Vec<_>) = patient.into_iter().unzip();
    assert_eq!(
        asked,
        [0, 0, 0, 0, 1],
        "it waits less each time, and at last not at all"
    );
    assert!(longest.is_sorted_by(|a, b| a >= b), "{longest:?}");
    assert!(
        (8..=16).contains(&longest[0]) && longest[3] <= 2,
        "{longest:?}"
    );
    let mut scene = Scene::held_for(60_000, wait(30_000));
    scene.tell_and_answer(HEARS);
    scene.release();
    scene.tell(HEARS_WITH_OTHERS);
    scene.sleep();
    scene.result().as_ref().unwrap();
}

#[test]
fn who_stands_behind_others_to_the_end_sends_nothing() {
    let mut scene = Scene::begun(60_000, wait(500), Acquire::start_behind);
    scene.sleep();
    let error = scene.result().as_ref().unwrap_err();
    assert_eq!((error.code().as_str(), error.key()), ("timeout", Some(KEY)));
    let mut scene = Scene::begun(60_000, wait(500), Acquire::start_behind);
    scene.tell(Event::Stop);
    assert_eq!(
        scene.result().as_ref().unwrap_err().code().as_str(),
        "cancelled"
    );
    assert_eq!(scene.step.calls, []);
}

#[test]
fn a_release_is_told_on_the_channel_that_the_layout_names_and_nothing_else_is() {
    let mut world = World::new([]);
    let take = |world: &mut World| {
        let now = world.memory.now();
        let started = Acquire::start(lock(1_000), Wait::NONE, &settings(), seed(3), now);
        world.run(started, None)
    };
    let grant = take(&mut world).unwrap();
    assert_eq!(world.memory.published(), Vec::<Vec<u8>>::new());
    let release = |world: &mut World| {
        let now = world.memory.now();
        let (token, until) = (&grant.token, grant.valid_until);
        let release = Release::start(lock(1_000), token, until, &settings(), seed(2), now);
        world.run(release, None)
    };
    release(&mut world).unwrap();
    assert_eq!(
        world.memory.published(),
        [b"invoice:42{invoice:42}:tlu1:released"]
    );
    release(&mut world).unwrap_err();
    assert_eq!(world.memory.published(), Vec::<Vec<u8>>::new());
    let tagged = Lock::new(key("{invoice}:42"), lock(1_000).ttl());
    assert_eq!(tagged.channel(), b"{invoice}:42:tl1:released");
}
