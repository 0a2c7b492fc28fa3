//! A model of a CPU's caches: two at the first level, one behind them, each set-associative with true LRU.
//!
//! It knows nothing of prefetching, of write-back, of the translation of addresses, or of other CPUs: what it says is
//! how a function's accesses fall, not how long they take.

use crate::set_associative::{Cache, Replacement, Shape};
use alloc::vec::Vec;

/// What one function's accesses came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Data that was read, in accesses.
    pub loads: u64,
    /// Data that was written, in accesses.
    pub stores: u64,
    /// Lines of code that were not in the first level.
    pub code_misses: u64,
    /// Lines of data that were not in the first level.
    pub data_misses: u64,
    /// Lines, of either, that were not in the last level.
    pub last_misses: u64,
}

/// Shapes of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shapes {
    /// First level, instructions.
    pub code: Shape,
    /// First level, data.
    pub data: Shape,
    /// Last level, both.
    pub last: Shape,
}

impl Default for Shapes {
    /// 32 KiB with 8 ways each at the first level, 8 MiB with 16 ways behind them, lines of 64 bytes.
    fn default() -> Self {
        let first = Shape {
            size: 32 << 10,
            ways: 8,
            line: 64,
            replacement: Replacement::Lru,
        };
        Self {
            code: first,
            data: first,
            last: Shape {
                size: 8 << 20,
                ways: 16,
                line: 64,
                replacement: Replacement::Lru,
            },
        }
    }
}

/// The three, and what was counted.
pub struct Caches {
    code: Cache,
    data: Cache,
    last: Cache,
    /// Bits of an address within a line of the first level.
    code_bits: u32,
    data_bits: u32,
    counts: Vec<Counts>,
}

impl Caches {
    /// Empty caches; counts for owners 0 to `owners` - 1.
    pub fn new(shapes: Shapes, owners: usize) -> Self {
        Self {
            code: Cache::new(shapes.code),
            data: Cache::new(shapes.data),
            last: Cache::new(shapes.last),
            code_bits: shapes.code.line.trailing_zeros(),
            data_bits: shapes.data.line.trailing_zeros(),
            counts: alloc::vec![Counts::default(); owners],
        }
    }

    /// Counts start again at 0; the caches stay warm.
    pub fn reset(&mut self) {
        self.counts.fill(Counts::default());
    }

    /// Number of the line of code that holds `address`.
    pub fn code_line(&self, address: u64) -> u64 {
        address >> self.code_bits
    }

    /// Instructions at `address` (physical), `length` bytes, are fetched.
    pub fn fetch(&mut self, owner: usize, address: u64, length: u64) {
        for line in lines(address, length, self.code_bits) {
            if !self.code.touch(line) {
                self.counts[owner].code_misses += 1;
                self.counts[owner].last_misses += u64::from(!self.last.touch(line));
            }
        }
    }

    /// Data at `address` (physical), `length` bytes, is read or written.
    pub fn access(&mut self, owner: usize, address: u64, length: u64, store: bool) {
        let counts = &mut self.counts[owner];
        counts.loads += u64::from(!store);
        counts.stores += u64::from(store);
        for line in lines(address, length, self.data_bits) {
            if !self.data.touch(line) {
                counts.data_misses += 1;
                counts.last_misses += u64::from(!self.last.touch(line));
            }
        }
    }

    /// What an owner's accesses came to.
    pub fn counts(&self, owner: usize) -> Counts {
        self.counts[owner]
    }
}

fn lines(address: u64, length: u64, bits: u32) -> impl Iterator<Item = u64> {
    (address >> bits..=(address + length.max(1) - 1) >> bits).map(move |line| line << bits)
}

#[cfg(test)]
mod tests;
