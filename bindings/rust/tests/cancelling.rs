//! Futures that are dropped leave no lock behind, wherever they are, and threads share a client.

use std::time::Duration;

use tallylock::{Client, Code, blocking};
use tallylock_testkit::{Proxy, Server, on_each_server};

const TTL: Duration = Duration::from_secs(60);

on_each_server! {
    fn dropping_an_acquire_leaves_no_lock(server: Server) {
        drop_acquires(&server.url(), &server);
    }

    fn dropping_an_acquire_whose_reply_is_held_leaves_no_lock(server: Server) {
        let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
        drop_held_acquire(&proxy);
        assert_free(&server);
    }

    fn dropping_an_acquire_that_waits_for_its_connection_leaves_no_lock(server: Server) {
        let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
        drop_unconnected_acquires(&proxy);
        assert_free(&server);
    }

    fn a_dropped_extend_does_not_hide_a_later_one(server: Server) {
        let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
        drop_extend(&proxy);
    }

    fn one_holder_at_a_time(server: Server) {
        let client = blocking::Client::connect(&server.url()).unwrap();
        let counter = &client.counter("inside", TTL).unwrap();
        let lock = client.lock("l", TTL).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let lock = lock.clone();
                scope.spawn(move || {
                    for _ in 0..5 {
                        let done = lock.with_lock(Duration::from_secs(30), |_| {
                            assert_eq!(counter.add(1)?, 1, "nobody else is inside");
                            counter.add(-1)
                        });
                        assert_eq!(done.unwrap(), 0);
                    }
                });
            }
        });
    }
}

/// Drops acquires around the moment at which their grants arrive: a little earlier after each that was granted, a little
/// later after each that was not.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn drop_acquires(url: &str, server: &Server) {
    let client = Client::connect(url).await.unwrap();
    let lock = client.lock("l", TTL).unwrap();
    let (mut granted, mut dropped) = (0, 0);
    let mut patience = Duration::from_micros(100);
    while granted < 50 || dropped < 50 {
        let acquiring = tokio::spawn({
            let lock = lock.clone();
            async move { lock.acquire(Duration::ZERO).await }
        });
        std::thread::sleep(patience);
        acquiring.abort();
        match acquiring.await {
            Ok(lease) => {
                granted += 1;
                patience = patience.mul_f64(0.8);
                lease.unwrap().release().await.unwrap();
            }
            Err(error) => {
                assert!(error.is_cancelled());
                dropped += 1;
                patience = patience.mul_f64(1.2) + Duration::from_micros(1);
            }
        }
        // Whatever was left is undone soon, long before its TTL is over.
        let next = lock.acquire(Duration::from_secs(10)).await;
        next.expect("the dropped acquire to be undone")
            .release()
            .await
            .unwrap();
    }
    drop(client);
    assert_free(server);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn drop_held_acquire(proxy: &Proxy) {
    let client = Client::connect(&proxy.url()).await.unwrap();
    let lock = client.lock("l", TTL).unwrap();
    lock.acquire(Duration::ZERO)
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    proxy.hold_matching("EVALSHA");
    let acquiring = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire(Duration::ZERO).await }
    });
    proxy.await_held(1).unwrap();
    acquiring.abort();
    assert!(acquiring.await.unwrap_err().is_cancelled());
    proxy.go();
    lock.acquire(Duration::from_secs(5))
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

/// The server's answer to the new connection's hello is held while the acquire is dropped, so that acquire and undo wait for
/// the same connection, and are sent when it is there.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn drop_unconnected_acquires(proxy: &Proxy) {
    // Longer than a busy machine needs for a step: the acquire must be under way still when it is dropped.
    let options = tallylock::Options::new(&proxy.url()).unwrap();
    let options = options.timeout(Duration::from_secs(20)).unwrap();
    let client = Client::connect_with(options).await.unwrap();
    let lock = client.lock("l", TTL).unwrap();
    for _ in 0..20 {
        let free = lock.acquire(Duration::from_secs(10)).await;
        free.expect("the dropped acquire to be undone")
            .release()
            .await
            .unwrap();
        proxy.hold();
        proxy.cut();
        let acquiring = tokio::spawn({
            let lock = lock.clone();
            async move { lock.acquire(Duration::ZERO).await }
        });
        proxy.await_held(1).unwrap();
        acquiring.abort();
        assert!(acquiring.await.unwrap_err().is_cancelled());
        proxy.go();
    }
    lock.acquire(Duration::from_secs(10))
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn drop_extend(proxy: &Proxy) {
    let client = Client::connect(&proxy.url()).await.unwrap();
    let lease = client.lock("l", TTL).unwrap().acquire(Duration::ZERO).await;
    let lease = std::sync::Arc::new(lease.unwrap());
    lease.extend(TTL).await.unwrap();
    proxy.hold_matching("EVALSHA");
    let extending = tokio::spawn({
        let lease = lease.clone();
        async move { lease.extend(3 * TTL).await }
    });
    proxy.await_held(1).unwrap();
    extending.abort();
    assert!(extending.await.unwrap_err().is_cancelled());
    proxy.go();
    lease.extend(2 * TTL).await.unwrap();
    assert!(lease.remaining() > TTL, "{:?}", lease.remaining());
    lease.release().await.unwrap();
}

fn assert_free(server: &Server) {
    let held: bool = redis::cmd("EXISTS")
        .arg("l")
        .query(&mut server.connection())
        .unwrap();
    assert!(!held, "a lock was left behind");
}

#[tokio::test]
async fn a_closed_client_says_so() {
    let client = Client::connect("memory://").await.unwrap();
    let lock = client.lock("l", TTL).unwrap();
    client.close();
    assert_eq!(
        lock.acquire(Duration::ZERO).await.unwrap_err().code(),
        Code::Closed
    );
}
