//! Looking through keys, for both clients: where a look stands.

use tallylock_core::error::Error;
use tallylock_core::scan::{Cursor, Found, Page, Scan as Look};
use tallylock_core::settings::Settings;
use tallylock_core::step::Step;
use tallylock_core::time::Instant;

use crate::{Client, random};

/// The keys that match a pattern, a page at a time; at no time more than one page is in memory.
///
/// A key may be found twice, and one that comes or goes meanwhile may be missed: that is what the server's SCAN gives.
#[derive(Debug)]
pub struct Scan {
    client: Client,
    walk: Walk,
}

impl Scan {
    pub(crate) fn new(client: Client, walk: Walk) -> Self {
        Self { client, walk }
    }

    /// The next keys, some hundreds at most and perhaps none; nothing at the end. After a failure it can be called again.
    ///
    /// # Errors
    /// `forbidden` if the account may not SCAN, `unavailable`, `timeout`, `closed`.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Found>>, Error> {
        let backend = self.client.backend();
        backend.check_open()?;
        if self.walk.is_over() {
            return Ok(None);
        }
        let settings = backend.settings();
        let (way, now) = self.client.begin(settings.timeout.as_millis());
        let (look, step) = self.walk.go_on(settings, now);
        let page = self.client.run(look, step, &way).await?;
        Ok(Some(self.walk.turn(page).found))
    }

    /// Where it stands, to be gone on from later by [`Client::scan_from`]; nothing at the beginning and at the end.
    pub fn cursor(&self) -> Option<&[u8]> {
        self.walk.cursor()
    }
}

/// A pattern, and how far it was looked for.
#[derive(Debug)]
pub(crate) struct Walk {
    pattern: Vec<u8>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Beginning,
    At(Cursor),
    End,
}

impl Walk {
    pub(crate) fn new(pattern: &[u8]) -> Self {
        Self {
            pattern: pattern.to_vec(),
            place: Place::Beginning,
        }
    }

    pub(crate) fn from(pattern: &[u8], cursor: &[u8]) -> Result<Self, Error> {
        Ok(Self {
            pattern: pattern.to_vec(),
            place: Place::At(Cursor::new(cursor)?),
        })
    }

    /// Whether there are no more pages.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.place, Place::End)
    }

    /// The look at the next page; at the first one again, if it is over.
    pub(crate) fn go_on(
        &self,
        settings: &Settings,
        now: Instant,
    ) -> (Look, Step<Result<Page, Error>>) {
        let cursor = match &self.place {
            Place::At(cursor) => Some(cursor),
            Place::Beginning | Place::End => None,
        };
        Look::start(&self.pattern, cursor, settings, random::jitter(now), now)
    }

    /// Takes in what the look found.
    pub(crate) fn turn(&mut self, mut page: Page) -> Page {
        self.place = page.next.take().map_or(Place::End, Place::At);
        page
    }

    pub(crate) fn cursor(&self) -> Option<&[u8]> {
        match &self.place {
            Place::At(cursor) => Some(cursor.as_bytes()),
            Place::Beginning | Place::End => None,
        }
    }
}
