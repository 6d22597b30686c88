//! The directory in which a meter writes down what it counts: one file a segment, named by its id.
//!
//! A process that dies leaves its files behind. Who opens the directory next finds in them what was counted and not settled,
//! under the ids by which the server knows what it has.

mod format;
mod page;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tallylock_core::error::{Code, Error};
use tallylock_core::id::Id;
use tallylock_core::key::Key;
use tallylock_core::meter::{Segment, Settled};

use format::{Found, Unreadable};
use page::Page;

/// What the name of a segment's file ends with.
const SUFFIX: &str = ".segment";

/// What the name of a segment's file ends with while it is written anew.
const NEW: &str = ".new";

/// The file that is locked while a meter uses the directory.
const LOCK: &str = "lock";

/// An open journal, which no other meter can open.
pub(super) struct Journal {
    directory: PathBuf,
    /// Locked as long as this is open.
    lock: File,
    /// The process that locked it; a child of `fork` has the same lock.
    process: u32,
    /// The file that is written to with each add.
    current: Option<(Id, File)>,
    pages: BTreeMap<Id, Page>,
    /// What was settled, but could not be written down yet.
    owed: BTreeMap<Id, Vec<Key>>,
    /// Files that are of no more use, but could not be removed yet.
    useless: Vec<Id>,
    /// Bytes about to be written, kept for their room.
    buffer: Vec<u8>,
}

impl Journal {
    /// Opens the directory, made if it is not there, and gives what was left in it, the oldest first.
    ///
    /// Fails with `busy` if another meter uses it, `invalid_argument` if a file is damaged and `unsupported` if one is of a later
    /// version, with all files as they were; and with `unavailable` if the system refuses something.
    pub(super) fn open(directory: &Path) -> Result<(Self, Vec<Segment>), Error> {
        if directory.as_os_str().is_empty() {
            // Files would be made in whatever directory this process works in.
            let detail = "the journal's directory has an empty name";
            return Err(Error::new(Code::InvalidArgument, detail));
        }
        let mut builder = DirBuilder::new();
        // Keys may tell about customers.
        let made = builder.recursive(true).mode(0o700).create(directory);
        made.map_err(|error| failed("make the directory", directory, &error))?;
        let mut journal = Self {
            directory: directory.to_owned(),
            lock: lock(directory)?,
            process: std::process::id(),
            current: None,
            pages: BTreeMap::new(),
            owed: BTreeMap::new(),
            useless: Vec::new(),
            buffer: Vec::new(),
        };
        let mut found = Vec::new();
        for id in journal.ids()? {
            let read = journal.read(&id)?;
            found.push((id, read));
        }
        // Nothing was changed as long as any of them might have been damaged.
        found.sort_by_key(|(_, read)| read.as_ref().map_or(0, |read| read.made));
        let mut segments = Vec::new();
        for (id, read) in found {
            match read {
                Some(Found {
                    segment, length, ..
                }) if !segment.is_empty() => {
                    journal.pages.insert(id.clone(), Page::torn(length));
                    journal.cut(&id)?;
                    segments.push(segment);
                }
                _ => journal.remove(&id)?,
            }
        }
        journal.sweep()?;
        Ok((journal, segments))
    }

    /// Writes down an add to a segment; if that fails, the add is not in the file.
    pub(super) fn append(
        &mut self,
        segment: &Segment,
        key: &[u8],
        amount: i64,
        now: u64,
    ) -> Result<(), Error> {
        let is_current = matches!(&self.current, Some((id, _)) if id == segment.id());
        if !is_current {
            self.rewrite(segment, now)?;
        } else if self.is_large(segment.id()) && self.rewrite(segment, now).is_err() {
            // No room for both, perhaps: it goes on as it is, and this is tried again when it is twice as long.
            self.postpone(segment.id());
        }
        self.buffer.clear();
        format::write_add(&mut self.buffer, key, amount);
        let Some((id, file)) = &self.current else {
            unreachable!("it was just begun");
        };
        let Some(page) = self.pages.get_mut(id) else {
            unreachable!("each file has its page");
        };
        let written = page.write(file, &self.buffer);
        written.map_err(|error| {
            let path = path(&self.directory, id);
            failed("write to", &path, &error).about(key)
        })
    }

    /// Writes down that a segment is about to be sent.
    pub(super) fn mark(&mut self, id: &Id, now: u64) -> Result<(), Error> {
        // From this moment on the ids of all that is not known to be settled are taken for remembered.
        self.pay(id)?;
        self.cut(id)?;
        self.current.take_if(|(current, _)| current == id);
        let path = path(&self.directory, id);
        let written = in_file(&path, |file| {
            file.write_all_at(&format::sent(now), format::SENT_AT)
        });
        written.map_err(|error| failed("write to", &path, &error))
    }

    /// Writes down that these sums are not to be sent any more.
    pub(super) fn done(&mut self, id: &Id, keys: &[Key]) -> Result<(), Error> {
        self.buffer.clear();
        for key in keys {
            format::write_done(&mut self.buffer, key);
        }
        let path = path(&self.directory, id);
        let Some(page) = self.pages.get_mut(id) else {
            unreachable!("each file has its page");
        };
        let written = in_file(&path, |file| page.write(file, &self.buffer));
        written.map_err(|error| failed("write to", &path, &error))
    }

    /// Writes down what was settled. What fails is tried again the next time.
    pub(super) fn settle(&mut self, settled: Settled) -> Result<(), Error> {
        for (id, keys) in settled.entries {
            self.owed.entry(id).or_default().extend(keys);
        }
        for id in &settled.emptied {
            self.owed.remove(id);
        }
        self.useless.extend(settled.emptied);
        let owed: Vec<Id> = self.owed.keys().cloned().collect();
        let paid = owed.iter().map(|id| self.pay(id));
        let paid = paid.fold(Ok(()), Result::and);
        let useless = std::mem::take(&mut self.useless).into_iter();
        let removed = useless.map(|id| {
            let removed = self.remove(&id);
            if removed.is_err() {
                self.useless.push(id);
            }
            removed
        });
        let removed = removed.fold(Ok(()), Result::and);
        paid.and(removed)
    }

    /// Writes the file of a segment that was never sent, with its sums so far, in place of the one that there may be.
    fn rewrite(&mut self, segment: &Segment, now: u64) -> Result<(), Error> {
        let id = segment.id().clone();
        let path = path(&self.directory, &id);
        let new = path.with_extension(&NEW[1..]);
        self.buffer.clear();
        format::write_header(&mut self.buffer, segment, now);
        for (key, amount) in segment.sums() {
            format::write_add(&mut self.buffer, key.as_bytes(), amount);
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let written = options.open(&new).and_then(|file| {
            file.write_all_at(&self.buffer, 0)?;
            // A process that dies leaves the one file or the other.
            fs::rename(&new, &path)?;
            Ok(file)
        });
        let file = written.map_err(|error| {
            // What cannot be removed now is swept away when the journal is opened next.
            let _ = fs::remove_file(&new);
            failed("write", &new, &error)
        })?;
        let page = Page::whole(self.buffer.len() as u64);
        self.pages.insert(id.clone(), page);
        self.current = Some((id, file));
        Ok(())
    }

    fn is_large(&self, id: &Id) -> bool {
        self.pages.get(id).is_some_and(Page::is_large)
    }

    fn postpone(&mut self, id: &Id) {
        if let Some(page) = self.pages.get_mut(id) {
            page.postpone();
        }
    }

    /// Removes what processes that died have not finished writing anew.
    fn sweep(&self) -> Result<(), Error> {
        let new = self.names(NEW)?.into_iter();
        let removed = new.map(|(_, path)| {
            fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))
        });
        removed.fold(Ok(()), Result::and)
    }

    /// Writes down what was settled of a segment before and could not be written down then.
    fn pay(&mut self, id: &Id) -> Result<(), Error> {
        let Some(keys) = self.owed.remove(id) else {
            return Ok(());
        };
        let paid = self.done(id, &keys);
        if paid.is_err() {
            self.owed.insert(id.clone(), keys);
        }
        paid
    }

    /// Cuts off what a write that failed has left.
    fn cut(&mut self, id: &Id) -> Result<(), Error> {
        let Some(page) = self.pages.get_mut(id) else {
            unreachable!("each file has its page");
        };
        if page.is_whole() {
            return Ok(());
        }
        let path = path(&self.directory, id);
        let cut = in_file(&path, |file| page.cut(file));
        cut.map_err(|error| failed("cut back", &path, &error))
    }

    fn remove(&mut self, id: &Id) -> Result<(), Error> {
        self.current.take_if(|(current, _)| current == id);
        self.pages.remove(id);
        let path = path(&self.directory, id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(failed("remove", &path, &error))
            }
            _ => Ok(()),
        }
    }

    /// The ids of the segments whose files are there.
    fn ids(&self) -> Result<Vec<Id>, Error> {
        let id = |(digits, path): (String, PathBuf)| {
            let is_ours = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let id = Id::new(digits).ok().filter(|_| is_ours);
            id.ok_or_else(|| damaged(&path, "its name is no segment's"))
        };
        let ids = self.names(SUFFIX)?.into_iter().map(id);
        let mut ids: Vec<Id> = ids.collect::<Result<_, _>>()?;
        ids.sort();
        Ok(ids)
    }

    /// The files whose names end like this: what stands before that, and where they are.
    fn names(&self, suffix: &str) -> Result<Vec<(String, PathBuf)>, Error> {
        let unlistable = |error: io::Error| failed("list", &self.directory, &error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(unlistable)? {
            let entry = entry.map_err(unlistable)?;
            let name = entry.file_name();
            if let Some(name) = name.to_str().and_then(|name| name.strip_suffix(suffix)) {
                names.push((name.to_owned(), entry.path()));
            }
        }
        Ok(names)
    }

    fn read(&self, id: &Id) -> Result<Option<Found>, Error> {
        let path = path(&self.directory, id);
        let file = File::open(&path).map_err(|error| failed("open", &path, &error))?;
        format::read(id, BufReader::new(file)).map_err(|unreadable| match unreadable {
            Unreadable::Io(error) => failed("read", &path, &error),
            Unreadable::Newer(version) => Error::new(
                Code::Unsupported,
                format!(
                    "the journal's file {} is of version {version}, which this version of tallylock does not know",
                    path.display()
                ),
            ),
            Unreadable::Damaged { at, what } => {
                damaged(&path, &format!("{what} is not what was written, at byte {at}"))
            }
        })
    }
}

impl Drop for Journal {
    /// Children that were forked meanwhile have the file open, too: to close it would not unlock it.
    fn drop(&mut self) {
        if std::process::id() == self.process {
            // Where this fails, it ends with the last of these processes.
            let _ = flock(&self.lock, FlockOperation::Unlock);
        }
    }
}

fn lock(directory: &Path) -> Result<File, Error> {
    let path = directory.join(LOCK);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| failed("open", &path, &error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::new(
            Code::Busy,
            format!(
                "another meter uses the journal in {}, or a child that its process forked still lives; give each meter a directory \
                 of its own",
                directory.display()
            ),
        )),
        Err(error) => Err(failed("lock", &path, &error.into())),
    }
}

/// Changes a segment's file. One that somebody removed is sent by no later process, and needs no change.
fn in_file(path: &Path, change: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        opened => change(&opened?),
    }
}

fn path(directory: &Path, id: &Id) -> PathBuf {
    let digits = String::from_utf8_lossy(id.as_bytes());
    directory.join(format!("{digits}{SUFFIX}"))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(
        Code::Unavailable,
        format!("the journal cannot {what} {}: {error}", path.display()),
    )
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::new(
        Code::InvalidArgument,
        format!(
            "the journal's file {} is damaged: {what}; move it away to go on without what it holds",
            path.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use tallylock_core::counter::Expiry;
    use tallylock_core::meter::Terms;
    use tallylock_core::time::Ttl;
    use tallylock_core::token::Seed;

    use super::*;

    const NOW: u64 = 4_711;
    const KEY: &[u8] = b"session:42:billableSecondsPending";

    /// One with so much in one counter, or, for 0, with nothing.
    fn segment(amount: i64) -> Segment {
        let ttl = Ttl::from_millis(60_000).unwrap();
        let terms = Terms {
            ttl,
            expiry: Expiry::Sliding,
            remember: ttl,
        };
        let empty = Segment::new(Seed::new([7; 16]), terms.clone());
        let sums = (amount != 0).then(|| (Key::new(KEY).unwrap(), amount));
        Segment::restored(empty.id().clone(), terms, None, sums)
    }

    /// Adds 1 so often, and gives the segment's file and how long it was at most.
    fn write(folder: &Path, adds: i64) -> (PathBuf, u64) {
        let (mut journal, _) = Journal::open(folder).unwrap();
        let path = path(folder, segment(0).id());
        let lengths = (0..adds).map(|counted| {
            journal.append(&segment(counted), KEY, 1, NOW).unwrap();
            fs::metadata(&path).unwrap().len()
        });
        let longest = lengths.max().unwrap();
        (path, longest)
    }

    fn left(folder: &Path) -> Vec<Segment> {
        Journal::open(folder).unwrap().1
    }

    #[test]
    fn a_file_grows_with_its_sums_and_not_with_its_adds() {
        let folder = tempfile::TempDir::new().unwrap();
        let (_, longest) = write(folder.path(), 50_000);
        assert!((1 << 20..(1 << 20) + 100).contains(&longest), "{longest}");
        assert_eq!(left(folder.path()), [segment(50_000)]);
    }

    #[test]
    fn what_cannot_be_written_anew_goes_on_as_it_is() {
        let folder = tempfile::TempDir::new().unwrap();
        let (path, _) = write(folder.path(), 1);
        // In the way of the file that is to be written.
        let new = path.with_extension("new");
        let (mut journal, _) = Journal::open(folder.path()).unwrap();
        journal.append(&segment(1), KEY, 1, NOW).unwrap();
        fs::create_dir(&new).unwrap();
        for counted in 2..50_000 {
            journal.append(&segment(counted), KEY, 1, NOW).unwrap();
        }
        assert!(fs::metadata(&path).unwrap().len() > 2 << 20);
        drop(journal);
        fs::remove_dir(&new).unwrap();
        // A process died while it wrote one anew.
        fs::write(&new, "tl-meter").unwrap();
        assert_eq!(left(folder.path()), [segment(50_000)]);
        assert!(!new.exists());
    }
}
