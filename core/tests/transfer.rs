//! A lease that changes hands, and a server that is asked whose it is.

mod scenario;

use scenario::Fate::{ReplyLost, Silence};
use scenario::{World, code, lock, seed, settings, ttl};
use tallylock_core::error::{Code, Error, Reason};
use tallylock_core::lock::{Acquire, Keeping, Lease, Renewal, Transferred};
use tallylock_core::step::{Event, Operation, Reply};
use tallylock_core::time::{Instant, Wait};

const EXPIRED: Code = Code::Lost(Reason::Expired);
const TAKEN: Code = Code::Lost(Reason::TakenOver);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A lease of 60 s that was acquired at 0.
fn held() -> (World, Renewal) {
    let mut world = World::new([]);
    let started = Acquire::start(lock(60_000), Wait::NONE, &settings(), seed(0xAB), at(0));
    let grant = world.run(started, None).unwrap();
    let keeping = Keeping::default();
    let renewal = Renewal::new(lock(60_000), grant, keeping, &settings(), seed(1), at(0));
    world.sent.clear();
    (world, renewal)
}

fn adopt(world: &mut World, text: &str, now: u64) -> Result<Lease, Error> {
    let transferred = Transferred::read(text)?;
    let grant = world.run(
        transferred.adopt(lock(30_000), &settings(), seed(3), at(now)),
        None,
    )?;
    Ok(Lease::new(lock(30_000), grant))
}

fn verify(world: &mut World, lease: &mut Lease, margin: f64) -> Result<(), Code> {
    let now = world.memory.now();
    let started = lease.verify(&settings(), seed(4), now);
    let result = world.run(started.map_err(|error| error.code())?, None);
    let margin = Wait::from_millis_f64(margin).unwrap();
    lease
        .verified(result, world.memory.now(), margin)
        .map_err(|error| error.code())
}

#[test]
fn it_is_adopted_with_its_fence_and_the_adopters_ttl() {
    let (mut world, mut giver) = held();
    let fence = giver.lease().fence();
    let text = giver.transfer(at(0)).unwrap().text();
    assert!(giver.is_over());
    let mut adopted = adopt(&mut world, &text, 0).unwrap();
    assert_eq!(adopted.fence(), fence);
    assert_eq!(adopted.remaining(at(0)), 30_000 - 302);
    assert_eq!(world.ttl("invoice:42"), Some(30_000));
    assert_eq!(giver.lease().remaining(at(0)), 0);
    assert!(!giver.leave(at(0)), "the giver releases nothing");
    let renewed = giver.handle(at(20_000), Event::Woke);
    assert!(renewed.calls.is_empty(), "and renews nothing");
    let release = adopted.release(&settings(), seed(5), at(0)).unwrap();
    let released = world.run(release, None);
    adopted.released(released).unwrap();
    assert_eq!(world.text("invoice:42"), None);
}

#[test]
fn it_is_not_given_away_while_a_renewal_is_under_way() {
    let (mut world, mut giver) = held();
    let step = giver.handle(at(20_000), Event::Woke);
    giver.transfer(at(20_001)).unwrap();
    assert!(!giver.is_over());
    let [extend] = step.calls.try_into().unwrap();
    let outcome = world.memory.execute(&extend);
    let call = extend.id;
    let answered = giver.handle(at(20_002), Event::Replied { call, outcome });
    assert!(answered.calls.is_empty());
    assert!(giver.is_over());
}

#[test]
fn what_is_lost_is_not_given_away() {
    let (_, mut giver) = held();
    assert_eq!(giver.transfer(at(60_000)).unwrap_err().code(), EXPIRED);
    assert_eq!(giver.lease().lost(at(60_000)).unwrap().code(), EXPIRED);
    let (_, mut giver) = held();
    assert!(giver.leave(at(0)));
    assert_eq!(giver.transfer(at(0)).unwrap_err().code(), EXPIRED);
}

#[test]
fn what_is_no_longer_held_by_the_token_is_not_adopted() {
    let (mut world, mut giver) = held();
    let text = giver.transfer(at(0)).unwrap().text();
    world
        .memory
        .put(b"invoice:42", b"another", Some(ttl(90_000)));
    assert_eq!(adopt(&mut world, &text, 0).unwrap_err().code(), TAKEN);
    world.memory.remove(b"invoice:42");
    assert_eq!(adopt(&mut world, &text, 0).unwrap_err().code(), EXPIRED);
    assert_eq!(world.text("invoice:42"), None, "and not made anew");
}

#[test]
fn an_adoption_says_what_is_known_when_replies_are_lost() {
    let (mut world, mut giver) = held();
    let text = giver.transfer(at(0)).unwrap().text();
    world.fates.extend([ReplyLost]);
    adopt(&mut world, &text, 0).unwrap();
    world.fates.extend([Silence]);
    let now = world.memory.now().as_millis();
    assert_eq!(code(adopt(&mut world, &text, now)), "outcome_unknown");
}

#[test]
fn a_text_of_others_is_refused_and_not_shown() {
    let (_, mut giver) = held();
    let transferred = giver.transfer(at(0)).unwrap();
    let good = transferred.text();
    assert_eq!(Transferred::read(&good).unwrap(), transferred);
    let (fence, token) = good.split_once(':').unwrap();
    let bad = [
        String::new(),
        token.to_owned(),
        format!(":{token}"),
        format!("-1:{token}"),
        format!("+1:{token}"),
        format!("1.5:{token}"),
        format!("9223372036854775808:{token}"),
        format!("{fence}:"),
        format!("{fence}:{}", &token[1..]),
        format!("{fence}:{}", token.to_uppercase()),
        format!("{good}."),
        format!("{good}\n"),
        format!(" {good}"),
    ];
    for text in bad {
        let error = Transferred::read(&text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{text:?}");
        assert!(!error.to_string().contains(&token[1..20]), "{error}");
    }
    assert!(!format!("{transferred:?}").contains(&token[1..20]));
}

#[test]
fn the_server_is_asked_whose_it_is() {
    let (mut world, mut renewal) = held();
    let lease = renewal.lease();
    assert_eq!(verify(&mut world, lease, 59_398.0), Ok(()));
    assert_eq!(
        verify(&mut world, lease, 59_399.0),
        Err(EXPIRED),
        "by our clock"
    );
    assert_eq!(
        lease.ensure(at(0), Wait::NONE),
        Ok(()),
        "too little is not nothing"
    );
    let token = world.text("invoice:42").unwrap();
    world
        .memory
        .put(b"invoice:42", token.as_bytes(), Some(ttl(5_000)));
    assert_eq!(verify(&mut world, lease, 5_000.0), Ok(()));
    assert_eq!(
        verify(&mut world, lease, 5_001.0),
        Err(EXPIRED),
        "by the server's word"
    );
    world.memory.put(b"invoice:42", token.as_bytes(), None);
    assert_eq!(
        verify(&mut world, lease, 50_000.0),
        Ok(()),
        "it never ends there"
    );
    world.fates.extend([ReplyLost]);
    assert_eq!(
        verify(&mut world, lease, 0.0),
        Ok(()),
        "a look can be repeated"
    );
    world.fates.extend([Silence]);
    assert_eq!(verify(&mut world, lease, 0.0), Err(Code::Timeout));
    assert_eq!(lease.lost(world.memory.now()), None, "silence says nothing");
}

#[test]
fn what_the_server_has_of_another_is_lost() {
    type Change = fn(&mut World);
    let changes: [(Change, Code); 3] = [
        (
            |world| world.memory.put(b"invoice:42", b"another", None),
            TAKEN,
        ),
        (
            |world| world.memory.put_other_type(b"invoice:42", None),
            TAKEN,
        ),
        (|world| world.memory.remove(b"invoice:42"), EXPIRED),
    ];
    for (change, lost) in changes {
        let (mut world, mut renewal) = held();
        change(&mut world);
        let lease = renewal.lease();
        assert_eq!(verify(&mut world, lease, 0.0), Err(lost));
        assert_eq!(lease.remaining(at(0)), 0);
        assert_eq!(
            verify(&mut world, lease, 0.0),
            Err(lost),
            "it is remembered"
        );
        assert_eq!(renewal.handle(at(1), Event::Woke).calls, []);
        assert!(renewal.is_over());
    }
}

#[test]
fn an_answer_that_no_server_gives_is_none() {
    let (_, mut renewal) = held();
    let (mut verify, step) = renewal.lease().verify(&settings(), seed(4), at(0)).unwrap();
    let call = step.calls[0].id;
    let outcome = Ok(vec![Reply::Integer(1), Reply::Integer(1)]);
    let answered = verify.handle(at(0), Event::Replied { call, outcome });
    let tallylock_core::step::Next::Done(result) = answered.next else {
        panic!("it is answered")
    };
    assert_eq!(code(result), "unsupported");
}
