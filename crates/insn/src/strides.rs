//! A prefetcher of strides: the reference prediction table of T.-F. Chen and J.-L. Baer, "Effective Hardware-Based Data
//! Prefetching for High-Performance Processors", IEEE Transactions on Computers 44 (5), 1995, section 3.
//!
//! The table is found by the address of the instruction that reads or writes, and is fully associative with true LRU. It
//! learns from what misses the first level only, and its prefetches go to the levels behind it; in the paper it sees
//! every access.

use alloc::vec::Vec;

/// How far an instruction's stride is to be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Seen once, or what was steady was wrong once.
    Initial,
    /// The stride has changed; it may be right now.
    Transient,
    /// It was right.
    Steady,
    /// It has changed twice in a row: nothing is prefetched.
    NoPrediction,
}

#[derive(Clone, Copy)]
struct Entry {
    instruction: u64,
    previous: u64,
    stride: u64,
    state: State,
}

/// The table.
pub struct Strides {
    /// The one used last in front.
    entries: Vec<Entry>,
    most: usize,
}

impl Strides {
    /// An empty one of at most so many instructions; none: nothing is ever predicted.
    pub fn new(most: usize) -> Self {
        Self {
            entries: Vec::with_capacity(most),
            most,
        }
    }

    /// The instruction missed at `address`; the address that it is taken to use next, if any.
    pub fn missed(&mut self, instruction: u64, address: u64) -> Option<u64> {
        if self.most == 0 {
            return None;
        }
        let known = self
            .entries
            .iter()
            .position(|entry| entry.instruction == instruction);
        let Some(place) = known else {
            self.entries.truncate(self.most - 1);
            let first = Entry {
                instruction,
                previous: address,
                stride: 0,
                state: State::Initial,
            };
            self.entries.insert(0, first);
            return None;
        };
        self.entries[..=place].rotate_right(1);
        let entry = &mut self.entries[0];
        entry.learn(address);
        let predicts = entry.state != State::NoPrediction && entry.stride != 0;
        predicts.then(|| address.wrapping_add(entry.stride))
    }
}

impl Entry {
    /// The paper's figure 5: state and stride by whether the address was the expected one.
    fn learn(&mut self, address: u64) {
        let right = address == self.previous.wrapping_add(self.stride);
        let kept = right || self.state == State::Steady;
        self.state = match (self.state, right) {
            (State::Initial | State::Steady | State::Transient, true) => State::Steady,
            (State::NoPrediction, true) => State::Transient,
            (State::Steady, false) => State::Initial,
            (State::Initial, false) => State::Transient,
            (State::Transient | State::NoPrediction, false) => State::NoPrediction,
        };
        if !kept {
            self.stride = address.wrapping_sub(self.previous);
        }
        self.previous = address;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u64 = 0xffff_ffff_8100_0000;

    /// What is predicted after each of the addresses.
    fn predicted(addresses: &[u64]) -> Vec<Option<u64>> {
        let mut strides = Strides::new(4);
        addresses
            .iter()
            .map(|&address| strides.missed(HERE, address))
            .collect()
    }

    #[test]
    fn a_stride_is_known_from_its_second_miss_on() {
        assert_eq!(
            predicted(&[0, 256, 512, 768]),
            [None, Some(512), Some(768), Some(1024)]
        );
    }

    #[test]
    fn it_may_lead_downwards() {
        assert_eq!(predicted(&[1024, 896, 768])[2], Some(640));
    }

    #[test]
    fn a_steady_stride_outlives_one_step_aside() {
        // The end of a row of a matrix: the stride stays, and is right again from where it goes on.
        let found = predicted(&[0, 64, 128, 192, 4096, 4160, 4224]);
        assert_eq!(found[4..], [Some(4160), Some(4224), Some(4288)]);
    }

    #[test]
    fn what_changes_twice_in_a_row_is_not_predicted() {
        let found = predicted(&[0, 64, 1000, 5000, 5100, 9000]);
        assert_eq!(found[2..], [None, None, None, None]);
        // Two equal steps make it tentative again.
        assert_eq!(
            predicted(&[0, 64, 1000, 5000, 5064, 5128])[5],
            Some(5128 + 64)
        );
    }

    #[test]
    fn instructions_have_strides_of_their_own_and_the_one_used_longest_ago_is_forgotten() {
        let mut strides = Strides::new(2);
        for step in 0..3 {
            strides.missed(1, step * 64);
            strides.missed(2, step * 128);
        }
        assert_eq!(strides.missed(1, 3 * 64), Some(4 * 64));
        assert_eq!(strides.missed(2, 3 * 128), Some(4 * 128));
        strides.missed(3, 0);
        assert_eq!(strides.missed(1, 4 * 64), None);
    }

    #[test]
    fn without_a_table_nothing_is_predicted() {
        let mut strides = Strides::new(0);
        assert!((0..9).all(|step| strides.missed(HERE, step * 64).is_none()));
    }
}
