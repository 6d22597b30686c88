//! The instance's memory: for each power of two a list of blocks of that size that nobody uses.
//!
//! The standard library's allocator joins neighbours that are free, for programs that ask for all sizes; that is several KB of
//! code. Here what a call allocates is of a few sizes, and what one has left the next one takes: the memory grows to what was
//! in use at once at the most, for each size, and not beyond.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, UnsafeCell};
use std::ptr::{self, null_mut};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator {
    free: UnsafeCell::new([null_mut(); SIZES]),
    rest: Cell::new(0),
    end: Cell::new(0),
};

/// The smallest block: room for a pointer, and what every type here is aligned to.
const SMALLEST: usize = 16;

/// From 16 bytes to 1 GB.
const SIZES: usize = 27;

const PAGE: usize = 65_536;

struct Allocator {
    /// The first free block of each size; in it stands where the next one is.
    free: UnsafeCell<[*mut u8; SIZES]>,
    /// Where memory begins that was never used, and where it ends.
    rest: Cell<usize>,
    end: Cell<usize>,
}

// SAFETY: an instance has one thread.
unsafe impl Sync for Allocator {}

// SAFETY: a block is in the list of its size or in one caller's hands, and it is as large as the size that its layout is
// rounded up to; blocks begin at multiples of the smallest.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(place) = place(layout) else {
            return null_mut();
        };
        // SAFETY: nobody else looks at the lists meanwhile, and a block in one of them holds a pointer.
        unsafe {
            let first = &mut (*self.free.get())[place];
            let block = *first;
            if block.is_null() {
                return self.take(SMALLEST << place);
            }
            *first = *block.cast::<*mut u8>();
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(place) = place(layout) else { return };
        // SAFETY: as above; the caller has given the block away.
        unsafe {
            let first = &mut (*self.free.get())[place];
            *block.cast::<*mut u8>() = *first;
            *first = block;
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises about the layout and the new size.
        unsafe {
            let wanted = Layout::from_size_align_unchecked(size, layout.align());
            if place(wanted) == place(layout) {
                return block;
            }
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

impl Allocator {
    /// A block of memory that was never used; null if the host gives no more.
    fn take(&self, size: usize) -> *mut u8 {
        let mut block = self.rest.get();
        if self.end.get() - block < size {
            let pages = size.div_ceil(PAGE);
            let before = core::arch::wasm32::memory_grow(0, pages);
            if before == usize::MAX {
                return null_mut();
            }
            // What was left is a part of the block if nobody else has grown the memory since.
            if before * PAGE != self.end.get() {
                block = before * PAGE;
            }
            self.end.set((before + pages) * PAGE);
        }
        self.rest.set(block + size);
        ptr::with_exposed_provenance_mut(block)
    }
}

/// Which list the blocks for a layout are in; none if it is too large, or aligned to more than blocks are.
fn place(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(SMALLEST);
    let place = (size - 1).ilog2() as usize + 1 - SMALLEST.ilog2() as usize;
    (layout.align() <= SMALLEST && place < SIZES).then_some(place)
}
