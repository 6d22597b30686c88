//! How a segment is written down, little-endian.
//!
//! A file begins with `tl-meter`, the format's version and the expiry (`u32` each, 0 sliding, 1 fixed), the 32 digits of the
//! segment's id, its TTL, how long its id is remembered, and when it was made (`u64` each, in milliseconds), and the CRC-32 of
//! all that. Then comes the one place that is ever overwritten: when the segment was sent (`u64`, milliseconds of wall-clock
//! time, 0 if it was not), and the CRC-32 of that.
//!
//! Records follow: a kind (`u8`), the length of a key (`u16`), and the CRC-32 of these two; the key; for the kind 1, an add, its
//! amount (`i64`), and nothing for the kind 2, a counter that was settled or taken; and the CRC-32 of the whole record so
//! far. As the length has a check of its own, a record whose writer died in the middle (the file ends before it does) is told
//! from one that was damaged.

use std::collections::BTreeMap;
use std::io::{self, Read};

use tallylock_core::counter::{Expiry, MOST};
use tallylock_core::id::Id;
use tallylock_core::key::Key;
use tallylock_core::meter::{Segment, Terms};
use tallylock_core::time::Ttl;

/// Where it is written when a segment was sent.
pub(super) const SENT_AT: u64 = 76;

/// How many bytes there are before the first record.
const HEADER: usize = 88;
const MAGIC: &[u8; 8] = b"tl-meter";
const VERSION: u32 = 1;

const ADD: u8 = 1;
const DONE: u8 = 2;
/// Kind, length and their check.
const HEAD: usize = 7;

/// A segment as it was found in a file.
pub(super) struct Found {
    pub(super) segment: Segment,
    /// When it was made, in milliseconds of wall-clock time.
    pub(super) made: u64,
    /// How many bytes of the file are whole; what follows them was never finished.
    pub(super) length: u64,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// The system does not give it.
    Io(io::Error),
    /// It is of a later version.
    Newer(u32),
    /// It is not what was written, from this byte on.
    Damaged { at: u64, what: &'static str },
}

/// What a file of a segment begins with, at this moment of wall-clock time.
pub(super) fn write_header(out: &mut Vec<u8>, segment: &Segment, now: u64) {
    let terms = segment.terms();
    let start = out.len();
    out.extend_from_slice(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend(u32::from(terms.expiry == Expiry::Fixed).to_le_bytes());
    out.extend_from_slice(segment.id().as_bytes());
    out.extend(terms.ttl.as_millis().to_le_bytes());
    out.extend(terms.remember.as_millis().to_le_bytes());
    out.extend(now.to_le_bytes());
    let check = crc32fast::hash(&out[start..]);
    out.extend(check.to_le_bytes());
    out.extend(sent(0));
}

/// What is written at [`SENT_AT`].
pub(super) fn sent(millis: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    let time = millis.to_le_bytes();
    bytes[..8].copy_from_slice(&time);
    bytes[8..].copy_from_slice(&crc32fast::hash(&time).to_le_bytes());
    bytes
}

/// An add, of a key that is one.
pub(super) fn write_add(out: &mut Vec<u8>, key: &[u8], amount: i64) {
    write_record(out, ADD, key, &amount.to_le_bytes());
}

/// The end of a counter's sum.
pub(super) fn write_done(out: &mut Vec<u8>, key: &Key) {
    write_record(out, DONE, key.as_bytes(), &[]);
}

fn write_record(out: &mut Vec<u8>, kind: u8, key: &[u8], payload: &[u8]) {
    let start = out.len();
    let length = u16::try_from(key.len()).expect("a key has at most 16 KiB");
    out.push(kind);
    out.extend(length.to_le_bytes());
    let check = crc32fast::hash(&out[start..]);
    out.extend(check.to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(payload);
    let check = crc32fast::hash(&out[start..]);
    out.extend(check.to_le_bytes());
}

/// Reads the file of the segment of this id; nothing if its writer died before it had written anything but a part of the header.
pub(super) fn read(id: &Id, file: impl Read) -> Result<Option<Found>, Unreadable> {
    let mut input = Input { file, at: 0 };
    let mut header = Vec::new();
    if !input.take(&mut header, HEADER)? {
        let whole = header.len().min(MAGIC.len());
        return if header[..whole] == MAGIC[..whole] {
            Ok(None)
        } else {
            Err(damaged(0, "it is no segment of a meter"))
        };
    }
    let (terms, made, sent) = read_header(id, &header)?;
    let mut sums = BTreeMap::new();
    let mut record = Vec::new();
    let mut length = input.at;
    loop {
        record.clear();
        if !input.take(&mut record, HEAD)? {
            break;
        }
        let key_length = checked_length(&record).ok_or_else(|| damaged(length, "a record"))?;
        let payload = match record[0] {
            ADD => 8,
            DONE => 0,
            _ => return Err(damaged(length, "a record of no known kind")),
        };
        if !input.take(&mut record, key_length + payload + 4)? {
            break;
        }
        read_record(&mut sums, &record, key_length).map_err(|what| damaged(length, what))?;
        length = input.at;
    }
    Ok(Some(Found {
        segment: Segment::restored(id.clone(), terms, sent, sums),
        made,
        length,
    }))
}

fn read_header(id: &Id, header: &[u8]) -> Result<(Terms, u64, Option<u64>), Unreadable> {
    let number = |at: usize| u64::from_le_bytes(array(&header[at..]));
    let word = |at: usize| u32::from_le_bytes(array(&header[at..]));
    if header[..8] != *MAGIC {
        return Err(damaged(0, "it is no segment of a meter"));
    }
    if word(8) > VERSION {
        return Err(Unreadable::Newer(word(8)));
    }
    let ttl = |at: usize| {
        let millis = i64::try_from(number(at)).ok();
        millis.and_then(|millis| Ttl::from_millis(millis).ok())
    };
    let expiry = match word(12) {
        0 => Some(Expiry::Sliding),
        1 => Some(Expiry::Fixed),
        _ => None,
    };
    let (Some(expiry), Some(ttl), Some(remember), true) = (
        expiry,
        ttl(48),
        ttl(56),
        crc32fast::hash(&header[..72]) == word(72) && header[16..48] == *id.as_bytes(),
    ) else {
        return Err(damaged(0, "its header"));
    };
    let sent = number(76);
    if crc32fast::hash(&header[76..84]) != word(84) {
        return Err(damaged(SENT_AT, "the time when it was sent"));
    }
    let terms = Terms {
        ttl,
        expiry,
        remember,
    };
    Ok((terms, number(64), (sent != 0).then_some(sent)))
}

/// The length of a record's key, if it is what was written.
fn checked_length(head: &[u8]) -> Option<usize> {
    let check = u32::from_le_bytes(array(&head[3..]));
    let length = u16::from_le_bytes(array(&head[1..]));
    (crc32fast::hash(&head[..3]) == check).then_some(usize::from(length))
}

/// Takes a whole record in.
fn read_record(
    sums: &mut BTreeMap<Key, i64>,
    record: &[u8],
    key_length: usize,
) -> Result<(), &'static str> {
    let (content, check) = record.split_at(record.len() - 4);
    if crc32fast::hash(content) != u32::from_le_bytes(array(check)) {
        return Err("a record");
    }
    let (key, payload) = content[HEAD..].split_at(key_length);
    let key = Key::new(key).map_err(|_| "a key that is none")?;
    if record[0] == DONE {
        sums.remove(&key);
        return Ok(());
    }
    let sum = sums.entry(key).or_default();
    *sum = sum
        .checked_add(i64::from_le_bytes(array(payload)))
        .ok_or("a sum that does not fit into 64 bits")?;
    if sums.len() > MOST {
        return Err("more counters than a segment has");
    }
    Ok(())
}

/// A file, and how far it was read.
struct Input<R> {
    file: R,
    at: u64,
}

impl<R: Read> Input<R> {
    /// Appends so many more bytes; false if the file ends before.
    fn take(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> Result<bool, Unreadable> {
        let limit = u64::try_from(wanted).unwrap_or(u64::MAX);
        let read = self
            .file
            .by_ref()
            .take(limit)
            .read_to_end(bytes)
            .map_err(Unreadable::Io)?;
        self.at += read as u64;
        Ok(read == wanted)
    }
}

fn damaged(at: u64, what: &'static str) -> Unreadable {
    Unreadable::Damaged { at, what }
}

/// The first bytes, of which there are enough.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let (array, _) = bytes
        .split_first_chunk()
        .unwrap_or_else(|| unreachable!("the caller has so many"));
    *array
}

#[cfg(test)]
mod tests {
    use tallylock_core::token::Seed;

    use super::*;

    fn segment() -> Segment {
        let millis = |millis| Ttl::from_millis(millis).unwrap();
        let terms = Terms {
            ttl: millis(900_000),
            expiry: Expiry::Fixed,
            remember: millis(60_000),
        };
        Segment::new(Seed::new([0xAB; 16]), terms)
    }

    fn key(name: &str) -> Key {
        Key::new(name).unwrap()
    }

    /// A header and three records, with the places where the records begin and the last one ends.
    fn file() -> (Vec<u8>, [usize; 4]) {
        let mut bytes = Vec::new();
        write_header(&mut bytes, &segment(), 4_711);
        let first = bytes.len();
        write_add(&mut bytes, b"a", 5);
        let second = bytes.len();
        write_add(&mut bytes, b"session:{42}", i64::MIN);
        let third = bytes.len();
        write_add(&mut bytes, b"a", -7);
        let end = bytes.len();
        (bytes, [first, second, third, end])
    }

    fn found(bytes: &[u8]) -> Result<Option<Found>, Unreadable> {
        read(segment().id(), bytes)
    }

    fn restored(sent: Option<u64>, sums: &[(&str, i64)]) -> Segment {
        let sums = sums.iter().map(|(name, sum)| (key(name), *sum));
        Segment::restored(
            segment().id().clone(),
            segment().terms().clone(),
            sent,
            sums,
        )
    }

    #[test]
    fn the_bytes_are_these() {
        let (bytes, [first, second, ..]) = file();
        let mut header = b"tl-meter\x01\0\0\0\x01\0\0\0".to_vec();
        header.extend(b"ab".repeat(16));
        header.extend(900_000_u64.to_le_bytes());
        header.extend(60_000_u64.to_le_bytes());
        header.extend(4_711_u64.to_le_bytes());
        assert_eq!(bytes[..72], header);
        assert_eq!(bytes[76..84], [0; 8]);
        assert_eq!(first, HEADER);
        assert_eq!(bytes[first..first + 3], [1, 1, 0]);
        assert_eq!(bytes[first + 7..second - 4], *b"a\x05\0\0\0\0\0\0\0");
    }

    #[test]
    fn what_was_written_is_read() {
        let (mut bytes, [.., end]) = file();
        let read = found(&bytes).unwrap().unwrap();
        let sums = [("a", -2), ("session:{42}", i64::MIN)];
        assert_eq!(read.segment, restored(None, &sums));
        assert_eq!((read.made, read.length), (4_711, end as u64));
        write_done(&mut bytes, &key("a"));
        bytes[76..88].copy_from_slice(&sent(9_999));
        let read = found(&bytes).unwrap().unwrap();
        assert_eq!(read.segment, restored(Some(9_999), &sums[1..]));
    }

    #[test]
    fn a_torn_tail_is_cut_off_at_each_byte() {
        let (bytes, [first, second, third, end]) = file();
        for length in 0..end {
            let read = found(&bytes[..length]).unwrap();
            let Some(read) = read else {
                assert!(length < HEADER, "{length}");
                continue;
            };
            let (whole, sums): (usize, &[_]) = match length {
                _ if length < second => (first, &[]),
                _ if length < third => (second, &[("a", 5)]),
                _ => (third, &[("a", 5), ("session:{42}", i64::MIN)]),
            };
            assert_eq!(read.length, whole as u64, "{length}");
            assert_eq!(read.segment, restored(None, sums), "{length}");
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found() {
        let (bytes, _) = file();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[place] ^= 1 << bit;
                assert!(found(&bytes).is_err(), "byte {place}, bit {bit}");
            }
        }
    }

    #[test]
    fn another_segments_file_and_a_later_version_are_refused() {
        let (mut bytes, _) = file();
        let other = Segment::new(Seed::new([1; 16]), segment().terms().clone());
        assert!(matches!(
            read(other.id(), bytes.as_slice()),
            Err(Unreadable::Damaged { at: 0, .. })
        ));
        bytes[8] = 2;
        assert!(matches!(found(&bytes), Err(Unreadable::Newer(2))));
    }
}
