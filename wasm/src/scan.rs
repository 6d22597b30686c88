//! Looking through the server's keys, a page at a time; where a look stands is in the caller's hand.
//!
//! A page is `[cursor or null at the end, [[key or id, number, remaining milliseconds or null], ...]]`.

use std::time::Duration;

use js_sys::{Array, Promise, Uint8Array};
use tallylock_core::claim::State;
use tallylock_core::error::Error;
use tallylock_core::key::Key;
use tallylock_core::scan::{self, Cursor, Found, Page, Scan};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::ask::Ask;
use crate::client::Client;
use crate::duration;
use crate::task::Answer;

#[wasm_bindgen]
impl Client {
    /// Looks for counters whose keys match a pattern on one page; if a time is given, only for those that hold something and
    /// end within it or have lost their TTL.
    pub fn scan(
        &self,
        pattern: Vec<u8>,
        cursor: Option<Vec<u8>>,
        within_ms: Option<f64>,
    ) -> Promise {
        let within = within_ms.map(|ms| duration::time("within", ms)).transpose();
        let ask = within.and_then(|within| {
            let within = within.map(|time| Duration::from_millis(time.as_millis()));
            page(pattern, cursor.as_deref(), move |found| {
                let is_wanted = within.is_none_or(|within| found.is_expiring(within));
                let total = found.counter().filter(|_| is_wanted)?;
                Some((&found.key, total))
            })
        });
        self.shared().ask(None, ask)
    }
}

/// The open claims of a counter on one page.
pub(crate) fn claims_of(counter: &Key, cursor: Option<&[u8]>) -> Result<Ask, Error> {
    page(scan::claims_of(counter), cursor, |found| {
        let claim = found.claim().filter(|claim| claim.state == State::Open)?;
        Some((claim.id, claim.amount))
    })
}

fn page(
    pattern: Vec<u8>,
    cursor: Option<&[u8]>,
    pick: impl Fn(&Found) -> Option<(&[u8], i64)> + 'static,
) -> Result<Ask, Error> {
    let cursor = cursor.map(Cursor::new).transpose()?;
    Ok(Ask::new(
        move |settings, seed, now| {
            Ok(Scan::start(&pattern, cursor.as_ref(), settings, seed, now).into())
        },
        move |_, answer| match answer {
            Answer::Page(page) => show(&page, &pick),
            // A scan ends with no other answer.
            _ => JsValue::UNDEFINED,
        },
    ))
}

/// The name and the number of what is wanted.
type Pick = dyn Fn(&Found) -> Option<(&[u8], i64)>;

fn show(page: &Page, pick: &Pick) -> JsValue {
    let list = Array::new();
    for found in &page.found {
        if let Some((name, number)) = pick(found) {
            let left = found.ttl.map_or(JsValue::NULL, |left| (left as f64).into());
            list.push(&Array::of3(
                &Uint8Array::from(name),
                &JsValue::from(number),
                &left,
            ));
        }
    }
    // A cursor is digits.
    let cursor = page
        .next
        .as_ref()
        .and_then(|next| std::str::from_utf8(next.as_bytes()).ok());
    Array::of2(&cursor.map_or(JsValue::NULL, JsValue::from), &list).into()
}
