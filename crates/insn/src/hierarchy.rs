//! Caches for instructions and for data, a second level and a last one behind both, with prefetching of what is next and
//! of strides.
//!
//! A line is brought into every level that did not have it; nothing is written back, and no level has to hold what a
//! smaller one holds (neither inclusive nor exclusive). A demand that misses the first level brings the next lines of
//! the same page into the second and the last level, at no cost; so does the prefetcher of strides with the line that it
//! expects, where that is in the same page.

use crate::set_associative::{Cache, Shape};
use crate::strides::Strides;

/// Shapes of the four, and how far the prefetcher looks ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shapes {
    /// First level, instructions.
    pub code: Shape,
    /// First level, data.
    pub data: Shape,
    /// Second level, both.
    pub second: Shape,
    /// Last level, both.
    pub last: Shape,
    /// Lines that are brought into the second level behind one that missed the first.
    pub ahead: u64,
    /// Instructions of which the prefetcher of strides knows how far apart their misses are.
    pub strides: usize,
}

/// Which level had a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The first.
    First,
    /// The second.
    Second,
    /// The last.
    Last,
    /// None: it came from memory.
    Memory,
}

/// Prefetchers do not cross pages: they know physical addresses only.
const PAGE: u64 = 4096;

/// The caches.
pub struct Hierarchy {
    code: Cache,
    data: Cache,
    second: Cache,
    last: Cache,
    ahead: u64,
    line: u64,
    strides: Strides,
}

impl Hierarchy {
    /// Empty ones.
    pub fn new(shapes: Shapes) -> Self {
        Self {
            code: Cache::new(shapes.code),
            data: Cache::new(shapes.data),
            second: Cache::new(shapes.second),
            last: Cache::new(shapes.last),
            ahead: shapes.ahead,
            line: shapes.second.line,
            strides: Strides::new(shapes.strides),
        }
    }

    /// The line of code that holds the physical address is fetched.
    pub fn fetch(&mut self, address: u64) -> Level {
        if self.code.touch(address) {
            return Level::First;
        }
        self.beyond_first(address)
    }

    /// The line of data that holds the physical address is read or written by the instruction at another one.
    pub fn access(&mut self, instruction: u64, address: u64) -> Level {
        if self.data.touch(address) {
            return Level::First;
        }
        let found = self.beyond_first(address);
        // Within a page physical addresses are as far apart as those that the program has.
        if let Some(expected) = self.strides.missed(instruction, address) {
            if expected & !(PAGE - 1) == address & !(PAGE - 1) {
                self.prefetch(expected);
            }
        }
        found
    }

    /// A line of code is fetched that is not modelled: where the one behind it is not in the first level, this one is
    /// taken not to be there either, and brings it.
    pub fn lead_code(&mut self, next: u64) {
        if !self.code.holds(next) {
            self.prefetch(next);
        }
    }

    /// The same for a line of data.
    pub fn lead_data(&mut self, next: u64) {
        if !self.data.holds(next) {
            self.prefetch(next);
        }
    }

    /// The line of page tables that holds the physical address is read on a walk; nothing is prefetched.
    pub fn walk(&mut self, address: u64) -> Level {
        if self.data.touch(address) {
            return Level::First;
        }
        self.find_beyond_first(address)
    }

    /// The line of data that holds the physical address, which is known to be in the first level, is used.
    pub fn use_again(&mut self, address: u64) {
        self.data.touch(address);
    }

    /// All data of the first level is thrown out.
    pub fn flush_data(&mut self) {
        self.data.clear();
    }

    fn beyond_first(&mut self, address: u64) -> Level {
        let found = self.find_beyond_first(address);
        let end = (address | (PAGE - 1)) + 1;
        let mut next = (address & !(self.line - 1)) + self.line;
        for _ in 0..self.ahead {
            if next < end {
                self.prefetch(next);
            }
            next += self.line;
        }
        found
    }

    fn find_beyond_first(&mut self, address: u64) -> Level {
        if self.second.touch(address) {
            Level::Second
        } else if self.last.touch(address) {
            Level::Last
        } else {
            Level::Memory
        }
    }

    fn prefetch(&mut self, address: u64) {
        if !self.second.holds(address) {
            self.second.touch(address);
            self.last.touch(address);
        }
    }
}

#[cfg(test)]
mod tests;
