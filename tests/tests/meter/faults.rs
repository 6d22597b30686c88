//! A meter whose server loses replies, is away, refuses, and forgets.

use std::time::{Duration, Instant};

use redis::Commands;
use tallylock::{Code, Flushed};
use tallylock_testkit::{Proxy, Server};

use crate::face::{Face, for_each_face};
use crate::{PATIENCE, TIMEOUT, TTL, by_hand, once_keys, options, total};

for_each_face! {
    lost_replies => what_was_flushed_and_not_answered_is_counted_once_by_the_blocking_face,
        what_was_flushed_and_not_answered_is_counted_once_by_the_async_face;
    away => what_gathers_while_the_server_is_away_is_counted_by_the_blocking_face,
        what_gathers_while_the_server_is_away_is_counted_by_the_async_face;
    refusals => what_the_server_refuses_is_handed_out_by_the_blocking_face,
        what_the_server_refuses_is_handed_out_by_the_async_face;
    forgotten => what_the_server_has_forgotten_is_not_sent_again_by_the_blocking_face,
        what_the_server_has_forgotten_is_not_sent_again_by_the_async_face;
    terms => counters_get_their_ttl_from_the_blocking_face,
        counters_get_their_ttl_from_the_async_face;
    no_client => a_meter_whose_client_is_closed_says_what_is_lost_by_the_blocking_face,
        a_meter_whose_client_is_closed_says_what_is_lost_by_the_async_face;
    no_scripts => what_gathers_is_counted_without_scripts_by_the_blocking_face,
        what_gathers_is_counted_without_scripts_by_the_async_face;
}

/// All replies of each flush are lost, although the server executes it.
async fn lost_replies<F: Face>(server: Server) {
    let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
    let patient = options(&proxy.url()).timeout(TIMEOUT).unwrap();
    let meter = F::open(patient, by_hand()).await.unwrap();
    warm_up(&meter).await;
    for round in 1..=3 {
        meter.add("a", 5).unwrap();
        meter.add("b{t}", -1).unwrap();
        proxy.hold();
        let error = meter.flush().await.unwrap_err();
        assert_eq!(error.code(), Code::OutcomeUnknown, "{error}");
        assert!(error.detail().contains("over 2 counters wait"), "{error}");
        assert_eq!(meter.trouble(), Some(error));
        // Executed already, whoever sends it again.
        assert_eq!(total(&server, "a"), Some(5 * round));
        // What is added meanwhile is of the next segment.
        meter.add("a", 100).unwrap();
        meter.add("a", -100).unwrap();
        proxy.cut();
        proxy.go();
        let flushed = meter.flush().await.unwrap();
        assert_eq!((flushed.settled, flushed.units), (3, 6));
        assert_eq!(meter.trouble(), None);
        assert_eq!(total(&server, "a"), Some(5 * round));
        assert_eq!(total(&server, "b{t}"), Some(-round));
    }
}

async fn away<F: Face>(server: Server) {
    let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
    let patient = options(&proxy.url()).timeout(TIMEOUT).unwrap();
    let meter = F::open(patient, by_hand()).await.unwrap();
    proxy.refuse().unwrap();
    proxy.cut();
    for round in 0..3 {
        meter.add("a", 5).unwrap();
        meter.add("b", 7).unwrap();
        let error = meter.flush().await.unwrap_err();
        // The first may go to a connection of which nobody knows yet that it is cut.
        assert!(
            error.code() == Code::Unavailable
                || (error.code() == Code::OutcomeUnknown && round == 0),
            "{error}"
        );
    }
    assert_eq!(total(&server, "a"), None);
    proxy.accept().unwrap();
    let flushed = meter.flush().await.unwrap();
    // The first flush closed a segment; what came after it is one more.
    let expected = Flushed {
        settled: 4,
        units: 36,
        ..Flushed::default()
    };
    assert_eq!(flushed, expected);
    assert_eq!(total(&server, "a"), Some(15));
    assert_eq!(total(&server, "b"), Some(21));
    assert_eq!(meter.close().await.unwrap(), Flushed::default());
}

async fn refusals<F: Face>(server: Server) {
    let mut connection = server.connection();
    let _: () = connection.lpush("list", "x").unwrap();
    let _: () = connection.set("text", "x").unwrap();
    let _: () = connection.set("full", i64::MAX).unwrap();
    let meter = F::open(options(&server.url()), by_hand()).await.unwrap();
    for key in ["good", "list", "text", "full", "better"] {
        meter.add(key, 3).unwrap();
    }
    let flushed = meter.flush().await.unwrap();
    assert_eq!((flushed.settled, flushed.refused), (2, 3));
    assert_eq!(total(&server, "good"), Some(3));
    assert_eq!(total(&server, "better"), Some(3));
    let refused = meter.take_refused().unwrap();
    let refused = refused.iter().map(|refused| {
        let key = std::str::from_utf8(&refused.key).unwrap();
        (key, refused.amount, refused.error.code())
    });
    let expected = [
        ("full", 3, Code::Overflow),
        ("list", 3, Code::WrongType),
        ("text", 3, Code::NotAnInteger),
    ];
    assert_eq!(refused.collect::<Vec<_>>(), expected);
    assert!(meter.take_refused().unwrap().is_empty());
    // What nobody took is an error at the end.
    meter.add("list", 3).unwrap();
    let error = meter.close().await.unwrap_err();
    assert_eq!(error.code(), Code::WrongType);
    assert!(
        error.detail().starts_with("3 units over 1 counters"),
        "{error}"
    );
    assert_eq!(meter.take_refused().unwrap().len(), 1);
    meter.close().await.unwrap();
    assert_eq!(meter.add("good", 1).unwrap_err().code(), Code::Closed);
    assert_eq!(meter.flush().await.unwrap_err().code(), Code::Closed);
}

async fn forgotten<F: Face>(server: Server) {
    let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
    let patient = options(&proxy.url()).timeout(TIMEOUT).unwrap();
    let short = by_hand().remembering(3 * TIMEOUT).unwrap();
    let meter = F::open(patient, short).await.unwrap();
    warm_up(&meter).await;
    meter.add("a", 5).unwrap();
    proxy.hold();
    let error = meter.flush().await.unwrap_err();
    assert_eq!(error.code(), Code::OutcomeUnknown, "{error}");
    proxy.cut();
    proxy.go();
    let begun = Instant::now();
    while !once_keys(&server, "a").is_empty() {
        assert!(
            begun.elapsed() < PATIENCE,
            "the server remembers for too long"
        );
    }
    let flushed = meter.flush().await.unwrap();
    assert_eq!((flushed.waiting, flushed.refused), (0, 1));
    let refused = meter.take_refused().unwrap();
    assert_eq!(
        (refused[0].key.as_slice(), refused[0].amount),
        (&b"a"[..], 5)
    );
    assert_eq!(refused[0].error.code(), Code::OutcomeUnknown);
    meter.close().await.unwrap();
    assert_eq!(total(&server, "a"), Some(5));
}

async fn terms<F: Face>(server: Server) {
    let mut connection = server.connection();
    let _: () = connection.set_ex("kept", 1, 60).unwrap();
    let fixed = by_hand().fixed().remembering(Duration::from_secs(30));
    let meter = F::open(options(&server.url()), fixed.unwrap())
        .await
        .unwrap();
    meter.add("kept", 1).unwrap();
    meter.add("new{t}", 0).unwrap();
    meter.close().await.unwrap();
    let mut ttl = |key: &str| -> i64 { connection.ttl(key).unwrap() };
    assert!((1..=60).contains(&ttl("kept")));
    let seconds = i64::try_from(TTL.as_secs()).unwrap();
    assert!((seconds - 60..=seconds).contains(&ttl("new{t}")));
    let keys = once_keys(&server, "*");
    assert_eq!(keys.len(), 2);
    assert!(
        keys.iter().all(|key| (1..=30).contains(&ttl(key))),
        "{keys:?}"
    );
}

async fn no_client<F: Face>(server: Server) {
    let meter = F::open(options(&server.url()), by_hand()).await.unwrap();
    meter.add("a", 5).unwrap();
    meter.close_client();
    assert_eq!(meter.add("a", 5).unwrap_err().code(), Code::Closed);
    let error = meter.close().await.unwrap_err();
    assert_eq!(error.code(), Code::Closed);
    assert!(
        error
            .detail()
            .starts_with("5 units over 1 counters are not"),
        "{error}"
    );
    assert_eq!(total(&server, "a"), None);
}

/// Lets the server know the script: the answer that it does not is none that can be lost to any harm.
async fn warm_up(meter: &impl Face) {
    meter.add("warm", 1).unwrap();
    meter.flush().await.unwrap();
}

async fn no_scripts<F: Face>(server: Server) {
    let setuser = "ACL SETUSER default -@scripting";
    let mut words = setuser.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    words
        .fold(&mut command, redis::Cmd::arg)
        .exec(&mut server.connection())
        .unwrap();
    let meter = F::open(options(&server.url()), by_hand()).await.unwrap();
    meter.add("a", 5).unwrap();
    meter.add("b", 6).unwrap();
    assert_eq!(meter.flush().await.unwrap().settled, 2);
    assert_eq!(
        (total(&server, "a"), total(&server, "b")),
        (Some(5), Some(6))
    );
}
