//! What users do with futures: they are sent between threads, and awaited on executors that are not tokio's.

use std::time::Duration;

use tallylock::{Client, Error};

const TTL: Duration = Duration::from_secs(60);

#[tokio::test]
async fn futures_can_be_spawned() {
    let client = Client::connect("memory://").await.unwrap();
    let task = tokio::spawn(async move {
        let counter = client.counter("calls", TTL)?;
        counter.add(1).await?;
        let lock = client.lock("job", TTL)?;
        let lease = lock.acquire(Duration::ZERO).await?;
        lease.extend(TTL).await?;
        lease.release().await?;
        lock.with_lock(Duration::ZERO, async |lease| {
            lease.ensure(Duration::from_secs(1))?;
            counter.drain().await
        })
        .await
    });
    let drained: Result<_, Error> = task.await.unwrap();
    assert_eq!(drained.unwrap(), Some(1));
}
