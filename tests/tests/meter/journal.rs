//! Meters that write down what they count.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use redis::Commands;
use tallylock::{Code, Flushed, MeterOptions};
use tallylock_testkit::{Kind, Proxy, Server};
use tempfile::TempDir;

use crate::face::{Blocking, Face, for_each_face, in_runtime};
use crate::{PATIENCE, TIMEOUT, by_hand, once_keys, options, total};

for_each_face! {
    taken_up => what_was_not_flushed_is_counted_by_the_next_meter_of_the_blocking_face,
        what_was_not_flushed_is_counted_by_the_next_meter_of_the_async_face;
    shared => two_meters_of_the_blocking_face_do_not_share_a_journal,
        two_meters_of_the_async_face_do_not_share_a_journal;
    handed_out => what_was_handed_out_is_not_sent_again_by_the_next_meter_of_the_blocking_face,
        what_was_handed_out_is_not_sent_again_by_the_next_meter_of_the_async_face;
    forgotten => what_the_server_has_forgotten_is_not_sent_by_the_next_meter_of_the_blocking_face,
        what_the_server_has_forgotten_is_not_sent_by_the_next_meter_of_the_async_face;
    left => what_is_left_at_the_end_stays_in_the_journal_of_the_blocking_face,
        what_is_left_at_the_end_stays_in_the_journal_of_the_async_face;
}

async fn taken_up<F: Face>(server: Server) {
    let folder = TempDir::new().unwrap();
    let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
    let open = async || {
        let options = options(&proxy.url()).timeout(TIMEOUT).unwrap();
        F::open(options, in_folder(&folder)).await.unwrap()
    };
    let meter = open().await;
    meter.add("sent", 5).unwrap();
    proxy.hold();
    meter.flush().await.unwrap_err();
    proxy.cut();
    proxy.go();
    meter.add("sent", 2).unwrap();
    meter.add("gathered{t}", -3).unwrap();
    meter.add("gathered{t}", -3).unwrap();
    // Dropped without a word, as by a process that dies.
    drop(meter);
    assert_eq!(segments(&folder).len(), 2);
    let meter = open().await;
    meter.add("gathered{t}", -1).unwrap();
    let flushed = meter.flush().await.unwrap();
    assert_eq!((flushed.settled, flushed.units), (4, 14));
    assert_eq!(total(&server, "sent"), Some(7));
    assert_eq!(total(&server, "gathered{t}"), Some(-7));
    assert!(segments(&folder).is_empty());
    meter.add("last", 1).unwrap();
    meter.close().await.unwrap();
    assert!(segments(&folder).is_empty());
    assert_eq!(open().await.close().await.unwrap(), Flushed::default());
    assert_eq!(total(&server, "last"), Some(1));
}

async fn shared<F: Face>(server: Server) {
    let folder = TempDir::new().unwrap();
    let open = async || F::open(options(&server.url()), in_folder(&folder)).await;
    let first = open().await.unwrap();
    first.add("c", 1).unwrap();
    let error = open().await.err().unwrap();
    assert_eq!(error.code(), Code::Busy);
    assert!(
        error.to_string().contains(folder.path().to_str().unwrap()),
        "{error}"
    );
    first.close().await.unwrap();
    let second = open().await.unwrap();
    assert_eq!(first.add("c", 1).unwrap_err().code(), Code::Closed);
    assert_eq!(first.close().await.unwrap(), Flushed::default());
    second.add("c", 1).unwrap();
    second.close().await.unwrap();
    assert_eq!(total(&server, "c"), Some(2));
}

async fn handed_out<F: Face>(server: Server) {
    let folder = TempDir::new().unwrap();
    let open = async || {
        F::open(options(&server.url()), in_folder(&folder))
            .await
            .unwrap()
    };
    let mut connection = server.connection();
    let _: () = connection.lpush("a list", "x").unwrap();
    let _: () = connection.lpush("another", "x").unwrap();
    let meter = open().await;
    for key in ["a list", "another", "good"] {
        meter.add(key, 4).unwrap();
    }
    assert_eq!(meter.flush().await.unwrap().refused, 2);
    drop(meter);
    // Nobody took them: the next one is refused the same, and they are taken from that.
    let _: () = connection.del("another").unwrap();
    let meter = open().await;
    let flushed = meter.flush().await.unwrap();
    assert_eq!((flushed.settled, flushed.refused), (1, 1));
    assert_eq!(meter.take_refused().unwrap()[0].key, b"a list");
    drop(meter);
    assert!(segments(&folder).is_empty());
    let _: () = connection.del("a list").unwrap();
    assert_eq!(open().await.flush().await.unwrap(), Flushed::default());
    assert_eq!(total(&server, "a list"), None);
    assert_eq!(total(&server, "another"), Some(4));
    assert_eq!(total(&server, "good"), Some(4));
}

async fn forgotten<F: Face>(server: Server) {
    let folder = TempDir::new().unwrap();
    let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
    let _: () = server.connection().lpush("list", "x").unwrap();
    let open = async || {
        let options = options(&proxy.url()).timeout(TIMEOUT);
        let short = in_folder(&folder).remembering(3 * TIMEOUT);
        F::open(options.unwrap(), short.unwrap()).await.unwrap()
    };
    let meter = open().await;
    meter.add("settled", 4).unwrap();
    meter.add("list", 5).unwrap();
    // One of the segment is refused, and so it is kept.
    meter.flush().await.unwrap();
    meter.add("lost", 6).unwrap();
    proxy.hold();
    meter.flush().await.unwrap_err();
    drop(meter);
    proxy.cut();
    proxy.go();
    let begun = Instant::now();
    while !once_keys(&server, "*").is_empty() {
        assert!(
            begun.elapsed() < PATIENCE,
            "the server remembers for too long"
        );
    }
    let meter = open().await;
    let flushed = meter.flush().await.unwrap();
    assert_eq!((flushed.settled, flushed.waiting), (0, 0));
    let refused = meter.take_refused().unwrap();
    let refused = refused
        .into_iter()
        .map(|refused| (refused.key, refused.amount, refused.error.code()));
    let expected = [
        (b"list".to_vec(), 5, Code::OutcomeUnknown),
        (b"lost".to_vec(), 6, Code::OutcomeUnknown),
    ];
    assert_eq!(refused.collect::<Vec<_>>(), expected);
    assert!(segments(&folder).is_empty());
    assert_eq!(total(&server, "settled"), Some(4));
    assert_eq!(total(&server, "lost"), Some(6));
}

async fn left<F: Face>(server: Server) {
    let folder = TempDir::new().unwrap();
    let meter = F::open(options(&server.url()), in_folder(&folder))
        .await
        .unwrap();
    meter.add("c", 4).unwrap();
    meter.close_client();
    let flushed = meter.close().await.unwrap();
    assert_eq!((flushed.settled, flushed.waiting), (0, 1));
    let meter = F::open(options(&server.url()), in_folder(&folder))
        .await
        .unwrap();
    meter.close().await.unwrap();
    assert_eq!(total(&server, "c"), Some(4));
}

/// A process is killed while it writes its last add.
#[test]
fn an_add_that_was_not_written_to_its_end_is_cut_off() {
    let server = Kind::Valkey.start(&[]);
    let (name, whole) = three_adds(&server);
    // A record has 19 bytes and its key.
    let last = whole.len() - 20;
    for length in last..=whole.len() {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(&name), &whole[..length]).unwrap();
        redis::cmd("FLUSHALL")
            .exec(&mut server.connection())
            .unwrap();
        let meter = open(&server, &folder).unwrap();
        let file = fs::metadata(folder.path().join(&name)).unwrap();
        let is_whole = length == whole.len();
        assert_eq!(file.len(), if is_whole { length } else { last } as u64);
        in_runtime(meter.close()).unwrap();
        assert_eq!(
            total(&server, "a"),
            Some(if is_whole { 8 } else { 1 }),
            "{length}"
        );
        assert_eq!(total(&server, "b"), Some(2));
    }
}

#[test]
fn a_damaged_journal_is_named_and_nothing_of_it_is_touched() {
    let server = Kind::Redis.start(&[]);
    let (name, whole) = three_adds(&server);
    let (other, good) = three_adds(&server);
    let folder = TempDir::new().unwrap();
    let write = |name: &Path, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    for place in [0, 9, 20, 50, 80, 90, 100, 110, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[place] ^= 0x10;
        // One that a killed process left unfinished is not touched either.
        write(&other, &good[..good.len() - 3]);
        write(&name, &flipped);
        let error = open(&server, &folder).err().unwrap();
        let code = if place == 9 {
            Code::Unsupported
        } else {
            Code::InvalidArgument
        };
        assert_eq!(error.code(), code, "{place}: {error}");
        assert!(
            error.to_string().contains(name.to_str().unwrap()),
            "{error}"
        );
        assert_eq!(fs::read(folder.path().join(&name)).unwrap(), flipped);
        assert_eq!(
            fs::metadata(folder.path().join(&other)).unwrap().len(),
            good.len() as u64 - 3
        );
        assert_eq!(total(&server, "a"), None);
    }
    write(&name, &whole);
    in_runtime(open(&server, &folder).unwrap().close()).unwrap();
    assert_eq!(total(&server, "a"), Some(9));
    assert!(segments(&folder).is_empty());
}

#[test]
fn other_files_in_the_directory_are_left_alone() {
    let server = Kind::Valkey.start(&[]);
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("notes.txt"), "x").unwrap();
    // What is left of a process that died before it had written a header.
    let unfinished = format!("{}.segment", "a".repeat(32));
    fs::write(folder.path().join(&unfinished), "tl-me").unwrap();
    in_runtime(open(&server, &folder).unwrap().close()).unwrap();
    assert!(segments(&folder).is_empty());
    assert!(folder.path().join("notes.txt").exists());
    fs::write(folder.path().join("mine.segment"), "x").unwrap();
    assert_eq!(
        open(&server, &folder).err().unwrap().code(),
        Code::InvalidArgument
    );
}

/// As programs do that tidy up.
#[test]
fn a_file_that_somebody_removed_does_not_hold_up_the_flush() {
    let server = Kind::Valkey.start(&[]);
    let folder = TempDir::new().unwrap();
    let meter = open(&server, &folder).unwrap();
    meter.add("a", 1).unwrap();
    for path in segments(&folder) {
        fs::remove_file(path).unwrap();
    }
    meter.add("a", 2).unwrap();
    in_runtime(meter.flush()).unwrap();
    meter.add("a", 4).unwrap();
    in_runtime(meter.close()).unwrap();
    assert_eq!(total(&server, "a"), Some(7));
    assert!(segments(&folder).is_empty());
}

#[test]
fn a_journal_without_a_name_is_refused_before_a_file_is_made() {
    let server = Kind::Valkey.start(&[]);
    let open = Blocking::open(options(&server.url()), by_hand().journal(""));
    let error = in_runtime(open).err().unwrap();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(!Path::new("lock").exists());
}

/// The name and the bytes of a file with three adds: 1 to `a`, 2 to `b`, 7 to `a`.
fn three_adds(server: &Server) -> (PathBuf, Vec<u8>) {
    let folder = TempDir::new().unwrap();
    let meter = open(server, &folder).unwrap();
    for (key, amount) in [("a", 1), ("b", 2), ("a", 7)] {
        meter.add(key, amount).unwrap();
    }
    drop(meter);
    let [path] = segments(&folder).try_into().unwrap();
    (
        PathBuf::from(path.file_name().unwrap()),
        fs::read(&path).unwrap(),
    )
}

fn open(server: &Server, folder: &TempDir) -> Result<Blocking, tallylock::Error> {
    in_runtime(Blocking::open(options(&server.url()), in_folder(folder)))
}

fn in_folder(folder: &TempDir) -> MeterOptions {
    by_hand().journal(folder.path())
}

/// The files of the segments in a journal.
fn segments(folder: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "segment")
        })
        .collect()
}
