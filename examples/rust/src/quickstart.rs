//! The billing job in its shortest form: add seconds, then bill them under a lock, fenced.
//!
//! Argument: a URL; `memory://` if none is given.

use std::time::Duration;
use tallylock::{Client, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "memory://".to_owned());
    let client = Client::connect(&url).await?;
    let ttl = Duration::from_secs(15 * 60);
    let pending = client.counter("session:42:billableSecondsPending", ttl)?;
    pending.add(30).await?;
    pending.add(45).await?;

    let billing = client.lock("billing:42", Duration::from_secs(30))?;
    billing
        .with_lock(Duration::from_secs(5), async |lease| {
            let seconds = pending.drain().await?.unwrap_or(0);
            lease.ensure(Duration::from_secs(2))?;
            println!("invoice: {seconds} seconds, fence {}", lease.fence());
            Ok(())
        })
        .await
}
