//! A branch predictor: gshare for conditional branches, a return stack, and a buffer of indirect targets.
//!
//! gshare is that of S. McFarling, "Combining Branch Predictors", WRL Technical Note TN-36 (1993), section 7: a table of
//! two-bit counters, found by the branch's address exclusive-or the directions of the latest branches. The targets of
//! direct jumps and calls are taken as known; an indirect branch is taken to go where it went last time.

use alloc::vec::Vec;

/// How large the predictor's tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bits of an index into the table of counters, which are as many as the directions that are kept.
    pub history_bits: u32,
    /// Return addresses that are kept.
    pub returns: usize,
    /// Indirect branches whose target is kept, a multiple of four.
    pub targets: usize,
}

/// Ways of the buffer of targets.
const WAYS: usize = 4;
/// Two-bit counters, four a byte, so that more of them are in the host's caches: from 2 on a branch is taken to be taken.
const STRONG: u8 = 3;
const TAKEN: u8 = 2;
/// Each of the four is weakly not taken.
const FOUR_WEAKLY_NOT_TAKEN: u8 = 0b01_01_01_01;

/// What has been learned of branches.
pub struct Predictor {
    history: u64,
    mask: u64,
    counters: Vec<u8>,
    returns: Vec<u64>,
    /// How many return addresses were pushed and not popped, at most as many as are kept.
    depth: usize,
    /// Where the next one goes: the stack is a ring, and the oldest one is lost.
    top: usize,
    /// Indirect branches and where each went last, a set of `WAYS` after another, the one used last in front.
    targets: Vec<(u64, u64)>,
    /// How many sets they are; where that is a power of two, the bits that name one.
    sets: usize,
    low_bits: Option<usize>,
}

impl Predictor {
    /// One that has seen nothing.
    pub fn new(sizes: Sizes) -> Self {
        let sets = (sizes.targets / WAYS).max(1);
        Self {
            history: 0,
            mask: (1 << sizes.history_bits) - 1,
            counters: alloc::vec![FOUR_WEAKLY_NOT_TAKEN; (1usize << sizes.history_bits).div_ceil(4)],
            returns: alloc::vec![0; sizes.returns],
            depth: 0,
            top: 0,
            targets: alloc::vec![(0, 0); sets * WAYS],
            sets,
            low_bits: sets.is_power_of_two().then_some(sets - 1),
        }
    }

    /// A conditional branch at `address` went its way; whether that was mispredicted.
    pub fn conditional(&mut self, address: u64, taken: bool) -> bool {
        let index = ((address ^ self.history) & self.mask) as usize;
        let (four, shift) = (&mut self.counters[index / 4], index % 4 * 2);
        let counter = *four >> shift & STRONG;
        let wrong = (counter >= TAKEN) != taken;
        let learned = if taken {
            (counter + 1).min(STRONG)
        } else {
            counter.saturating_sub(1)
        };
        *four ^= (counter ^ learned) << shift;
        self.history = (self.history << 1 | u64::from(taken)) & self.mask;
        wrong
    }

    /// A call that will return to `address`.
    pub fn called(&mut self, address: u64) {
        self.returns[self.top] = address;
        self.top += 1;
        if self.top == self.returns.len() {
            self.top = 0;
        }
        self.depth = (self.depth + 1).min(self.returns.len());
    }

    /// A return to `address`; whether that was mispredicted.
    pub fn returned(&mut self, address: u64) -> bool {
        if self.depth == 0 {
            return true;
        }
        self.depth -= 1;
        if self.top == 0 {
            self.top = self.returns.len();
        }
        self.top -= 1;
        self.returns[self.top] != address
    }

    /// What was learned of indirect branches is forgotten.
    pub fn forget_targets(&mut self) {
        self.targets.fill((0, 0));
    }

    /// An indirect branch at `address` went to `target`; whether that was mispredicted.
    pub fn indirect(&mut self, address: u64, target: u64) -> bool {
        let set = match self.low_bits {
            Some(bits) => address as usize & bits,
            None => address as usize % self.sets,
        };
        let ways = &mut self.targets[set * WAYS..(set + 1) * WAYS];
        let place = ways.iter().position(|&(site, _)| site == address);
        ways[..=place.unwrap_or(WAYS - 1)].rotate_right(1);
        let wrong = place.is_none() || ways[0].1 != target;
        ways[0] = (address, target);
        wrong
    }
}

#[cfg(test)]
mod tests;
