//! Looking through the server's counters, a page at a time; where a look stands is in the caller's hand.

use std::sync::Arc;
use std::time::Duration;

use tallylock::Found;

use crate::argument;
use crate::completion::{AtClose, Outcome, pack_bytes, submit};
use crate::error::CallError;
use crate::registry;

/// One page of the counters whose keys match a pattern (`*`, `?`, `[a-z]`), from `cursor` on, or from the beginning if that is
/// empty; if `within_us` is not negative, only those that hold something and end within so many microseconds or have lost
/// their TTL.
///
/// Gives, little-endian, `[length u32][cursor]`, empty at the end, and for each counter
/// `[length u32][key][total i64][remaining_us i64]`, -1 for one without a TTL.
///
/// Fails with `invalid_argument` if the cursor is none, and with `timeout`, `unavailable`, `forbidden`, `unsupported`, `closed`.
#[uniffi::export]
pub fn client_scan(
    client: u64,
    pattern: &[u8],
    cursor: &[u8],
    within_us: i64,
) -> Result<Vec<u8>, CallError> {
    let here = registry::client(client)?;
    let client = here.blocking();
    let mut scan = match cursor {
        [] => client.scan(pattern),
        cursor => client.scan_from(pattern, cursor)?,
    };
    let page = scan.next_page()?.unwrap_or_default();
    Ok(pack(scan.cursor(), &page, within(within_us)))
}

/// `client_scan` in the background; bytes come under `ticket`.
#[uniffi::export]
pub fn submit_client_scan(
    client: u64,
    ticket: u64,
    pattern: &[u8],
    cursor: &[u8],
    within_us: i64,
) -> Result<(), CallError> {
    let (pattern, cursor) = (pattern.to_vec(), cursor.to_vec());
    submit(
        client,
        ticket,
        Arc::default(),
        AtClose::RunsOn,
        move |here| async move {
            let client = here.background();
            let mut scan = if cursor.is_empty() {
                client.scan(pattern)
            } else {
                client.scan_from(pattern, cursor)?
            };
            let page = scan.next_page().await?.unwrap_or_default();
            Ok(Outcome::Bytes(pack(
                scan.cursor(),
                &page,
                within(within_us),
            )))
        },
    )
}

fn within(micros: i64) -> Option<Duration> {
    u64::try_from(micros).ok().map(Duration::from_micros)
}

fn pack(cursor: Option<&[u8]>, page: &[Found], within: Option<Duration>) -> Vec<u8> {
    let mut packed = Vec::new();
    pack_bytes(&mut packed, cursor.unwrap_or_default());
    for found in page {
        let Some(total) = found.counter() else {
            continue;
        };
        if within.is_some_and(|within| !found.is_expiring(within)) {
            continue;
        }
        let remaining = found.ttl.map(Duration::from_millis);
        pack_bytes(&mut packed, &found.key);
        packed.extend(total.to_le_bytes());
        packed.extend(remaining.map_or(-1, argument::micros).to_le_bytes());
    }
    packed
}
