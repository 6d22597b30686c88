//! Many who add while others flush and close.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use tallylock::{Client, Code, MeterOptions, blocking};
use tallylock_testkit::{Server, on_each_server};

use crate::face::in_runtime;
use crate::{PATIENCE, TTL, by_hand, total};

const ADDERS: i64 = 4;

on_each_server! {
    fn what_gathers_is_flushed_in_the_background(server: Server) {
        let client = blocking::Client::connect(&server.url()).unwrap();
        let often = MeterOptions::new(TTL).unwrap().interval(Duration::from_millis(5)).unwrap();
        let meter = client.meter(often).unwrap();
        meter.add("by time", 1).unwrap();
        appears(&server, "by time", 1);
        let units = client.meter(by_hand().max_units(10).unwrap()).unwrap();
        units.add("by units", 9).unwrap();
        units.add("by units", 1).unwrap();
        appears(&server, "by units", 10);
        in_runtime(async {
            let client = Client::connect(&server.url()).await.unwrap();
            let often = MeterOptions::new(TTL).unwrap().interval(Duration::from_millis(5)).unwrap();
            let meter = client.meter(often).unwrap();
            meter.add("by time, async", 1).unwrap();
            appears(&server, "by time, async", 1);
            let counters = client.meter(by_hand().max_counters(2).unwrap()).unwrap();
            counters.add("by counters", 1).unwrap();
            counters.add("other", 1).unwrap();
            appears(&server, "by counters", 1);
        });
    }

    fn threads_that_add_while_others_flush_lose_nothing(server: Server) {
        let client = blocking::Client::connect(&server.url()).unwrap();
        let often = MeterOptions::new(TTL).unwrap();
        let often = often.interval(Duration::from_millis(1)).unwrap().max_units(100).unwrap();
        let meter = client.meter(often).unwrap();
        std::thread::scope(|scope| {
            for adder in 0..ADDERS {
                let meter = meter.clone();
                scope.spawn(move || {
                    for n in 0..5_000 {
                        meter.add(format!("c{}", n % 50), 1).unwrap();
                        if adder == 0 && n % 500 == 0 {
                            meter.flush().unwrap();
                        }
                    }
                });
            }
        });
        meter.close().unwrap();
        for counter in 0..50 {
            assert_eq!(total(&server, &format!("c{counter}")), Some(ADDERS * 100));
        }
    }

    fn a_meter_closed_under_load_has_counted_what_add_returned_for(server: Server) {
        let client = blocking::Client::connect(&server.url()).unwrap();
        let meter = client.meter(by_hand().max_units(50).unwrap()).unwrap();
        let counted = AtomicI64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..ADDERS {
                scope.spawn(|| loop {
                    match meter.add("c", 1) {
                        Ok(()) => counted.fetch_add(1, Ordering::Relaxed),
                        Err(error) => return assert_eq!(error.code(), Code::Closed),
                    };
                });
            }
            let begun = Instant::now();
            while counted.load(Ordering::Relaxed) < 10_000 {
                assert!(begun.elapsed() < PATIENCE, "the adders are stuck");
            }
            meter.close().unwrap();
        });
        assert_eq!(total(&server, "c"), Some(counted.into_inner()));
        meter.close().unwrap();
    }

    fn a_flush_whose_future_is_dropped_goes_on(server: Server) {
        in_runtime(async {
            let client = Client::connect(&server.url()).await.unwrap();
            let meter = client.meter(by_hand()).unwrap();
            meter.add("c", 1).unwrap();
            server.pause();
            let at_once = tokio::time::timeout(Duration::from_millis(20), meter.flush());
            assert!(at_once.await.is_err(), "the server does not answer");
            server.resume();
            appears(&server, "c", 1);
            meter.close().await.unwrap();
            assert_eq!(total(&server, "c"), Some(1));
        });
    }
}

fn appears(server: &Server, key: &str, amount: i64) {
    let begun = Instant::now();
    while total(server, key) != Some(amount) {
        assert!(begun.elapsed() < PATIENCE, "{key} does not appear");
    }
}
