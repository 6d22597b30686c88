//! Looking through keys.

use tallylock_core::error::Error;
use tallylock_core::scan::Found;

use super::Client;
use crate::scan::Walk;

/// The keys that match a pattern, a page at a time; at no time more than one page is in memory.
///
/// A key may be found twice, and one that comes or goes meanwhile may be missed: that is what the server's SCAN gives.
#[derive(Debug)]
pub struct Scan {
    client: Client,
    walk: Walk,
}

impl Scan {
    pub(super) fn new(client: Client, walk: Walk) -> Self {
        Self { client, walk }
    }

    /// The next keys, some hundreds at most and perhaps none; nothing at the end. After a failure it can be called again.
    ///
    /// # Errors
    /// `forbidden` if the account may not SCAN, `unavailable`, `timeout`, `closed`.
    pub fn next_page(&mut self) -> Result<Option<Vec<Found>>, Error> {
        if self.walk.is_over() {
            return Ok(None);
        }
        let page = self
            .client
            .run(|settings, now| self.walk.go_on(settings, now))?;
        Ok(Some(self.walk.turn(page).found))
    }

    /// Where it stands, to be gone on from later by [`Client::scan_from`]; nothing at the beginning and at the end.
    pub fn cursor(&self) -> Option<&[u8]> {
        self.walk.cursor()
    }
}
