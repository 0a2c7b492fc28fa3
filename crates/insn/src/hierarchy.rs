//! Caches for instructions and for data, a second level and a last one behind both, with next-line prefetching.
//!
//! A line is brought into every level that did not have it; nothing is written back, and no level has to hold what a
//! smaller one holds (neither inclusive nor exclusive). A demand that misses the first level brings the next lines of
//! the same page into the second and the last level, at no cost.

use crate::set_associative::{Cache, Shape};

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
        }
    }

    /// The line of code that holds the physical address is fetched.
    pub fn fetch(&mut self, address: u64) -> Level {
        if self.code.touch(address) {
            return Level::First;
        }
        self.beyond_first(address)
    }

    /// The line of data that holds the physical address is read or written.
    pub fn access(&mut self, address: u64) -> Level {
        if self.data.touch(address) {
            return Level::First;
        }
        self.beyond_first(address)
    }

    fn beyond_first(&mut self, address: u64) -> Level {
        let found = if self.second.touch(address) {
            Level::Second
        } else if self.last.touch(address) {
            Level::Last
        } else {
            Level::Memory
        };
        let end = (address | (PAGE - 1)) + 1;
        let mut next = (address & !(self.line - 1)) + self.line;
        for _ in 0..self.ahead {
            if next < end && !self.second.holds(next) {
                self.second.touch(next);
                self.last.touch(next);
            }
            next += self.line;
        }
        found
    }
}

#[cfg(test)]
mod tests;
