//! A segment's file: how much of it is whole, and how it is written to.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// How long a file becomes, in bytes, before its sums are written in place of its adds.
const LARGE: u64 = 1 << 20;

/// What is known of a segment's file.
pub(super) struct Page {
    /// How many bytes of it are whole.
    length: u64,
    /// A write failed that may have left something behind these.
    is_torn: bool,
    /// From which length on it is large.
    large: u64,
}

impl Page {
    /// One that was just written, to its end.
    pub(super) fn whole(length: u64) -> Self {
        Self {
            length,
            is_torn: false,
            large: LARGE.max(4 * length),
        }
    }

    /// One of which so much is whole.
    pub(super) fn torn(length: u64) -> Self {
        Self {
            is_torn: true,
            ..Self::whole(length)
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        !self.is_torn
    }

    /// Whether it is so long that its sums should be written in place of its adds.
    pub(super) fn is_large(&self) -> bool {
        self.length >= self.large
    }

    /// Lets it become twice as long before it is large again.
    pub(super) fn postpone(&mut self) {
        self.large = 2 * self.length;
    }

    /// Writes at the end of what is whole.
    pub(super) fn write(&mut self, file: &File, bytes: &[u8]) -> io::Result<()> {
        self.cut(file)?;
        let written = file.write_all_at(bytes, self.length);
        if written.is_ok() {
            self.length += bytes.len() as u64;
        } else {
            self.is_torn = true;
            // If this fails, it is tried again before anything else is written.
            let _ = self.cut(file);
        }
        written
    }

    pub(super) fn cut(&mut self, file: &File) -> io::Result<()> {
        if self.is_torn {
            file.set_len(self.length)?;
            self.is_torn = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};

    use super::*;

    #[test]
    fn what_a_write_that_failed_has_left_is_cut_off_before_the_next() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "good and torn").unwrap();
        let mut page = Page::whole(4);
        // Opened for reading, it can neither be written to nor cut.
        page.write(&File::open(&path).unwrap(), b"more")
            .unwrap_err();
        assert!(!page.is_whole());
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        page.write(&file, b"!").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"good!");
    }
}
