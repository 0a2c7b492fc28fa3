//! Repeated string instructions: `rep movsb` and its kin.
//!
//! Under `-icount` QEMU runs one iteration at a time: the instruction ends its block and jumps to itself. A CPU
//! counts the whole as one instruction, when it is done. It is done when the code behind it starts to run after it
//! has run at all; a fault or an interrupt on the way leads elsewhere first, and changes nothing.

use crate::decode::{may_end_with_repeat, Repeat};
use crate::layout::{repeat as place, RepeatCounter, MOST_REPEATS};
use crate::verdict::Verdict;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Counter of the function, or page, that it belongs to.
    pub owner: u32,
    /// What it is.
    pub repeat: Repeat,
    /// Passes when it was last seen to be done.
    pub seen: u64,
}

/// All that were translated.
#[derive(Default)]
pub struct Repeats {
    sites: Vec<Site>,
    by_address: BTreeMap<u64, usize>,
    by_successor: BTreeMap<u64, usize>,
    /// So many were there as the trial began.
    old: usize,
    /// What earlier trials have translated may not fit with what this one has.
    verdict: Option<Verdict>,
}

impl Repeats {
    /// The number of the one from `address` to `end`; None where there are too many.
    pub fn find(&mut self, address: u64, end: u64, owner: u32, repeat: Repeat) -> Option<usize> {
        if let Some(&number) = self.by_address.get(&address) {
            let site = &mut self.sites[number];
            if (site.owner, site.repeat) != (owner, repeat) {
                let is_old = number < self.old;
                self.note(if is_old {
                    Verdict::Doubtful
                } else {
                    Verdict::Ends
                });
            }
            let site = &mut self.sites[number];
            (site.owner, site.repeat) = (owner, repeat);
            return Some(number);
        }
        if end & 0xfff == 0 {
            // What follows on the next page may have been translated before (`may_precede`).
            self.note(Verdict::Doubtful);
        }
        if self.sites.len() >= MOST_REPEATS {
            return None;
        }
        let number = self.sites.len();
        self.sites.push(Site {
            owner,
            repeat,
            seen: 0,
        });
        self.by_address.insert(address, number);
        self.by_successor.insert(end, number);
        Some(number)
    }

    fn note(&mut self, verdict: Verdict) {
        self.verdict = self.verdict.max(Some(verdict));
    }

    /// Another trial begins, and translations stay. Another program's instruction at the same address takes the place
    /// of one that was counted: what was translated of that counts for this one from then on.
    pub fn begin_anew(&mut self) -> Verdict {
        self.old = self.sites.len();
        self.verdict.take().unwrap_or(Verdict::Again)
    }

    /// Whether the block at `address` may run right after a repeated instruction. `page` holds its first byte.
    pub fn may_precede(&self, address: u64, page: Option<&[u8; 4096]>) -> bool {
        let within = (address & 0xfff) as usize;
        self.by_successor.contains_key(&address)
            || page.is_some_and(|page| may_end_with_repeat(&page[..within]))
    }

    /// The one before `address`.
    pub fn before(&self, address: u64) -> Option<usize> {
        self.by_successor.get(&address).copied()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sites.len()
    }

    /// The one with this number.
    pub fn get(&self, number: usize) -> &Site {
        &self.sites[number]
    }

    /// Bytes that number `number` worked on with so many memory accesses: one or two an iteration.
    pub fn bytes(&self, number: usize, accesses: u64) -> u64 {
        let repeat = self.sites[number].repeat;
        // Asked for at each mark, so that it must be quick: no division.
        let iterations = accesses >> (repeat.accesses - 1);
        iterations << repeat.width.trailing_zeros()
    }

    /// Bytes that all worked on.
    pub fn all_bytes(&self, counters: &[u64]) -> u64 {
        let accesses = |number| counters[place(number, RepeatCounter::Accesses)];
        (0..self.sites.len())
            .map(|number| self.bytes(number, accesses(number)))
            .sum()
    }

    /// Takes note that it has run `passes` times; whether it has since the last note.
    pub fn has_run(&mut self, number: usize, passes: u64) -> bool {
        core::mem::replace(&mut self.sites[number].seen, passes) != passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVSB: Repeat = Repeat {
        width: 1,
        accesses: 2,
    };

    #[test]
    fn an_address_keeps_its_number() {
        let mut repeats = Repeats::default();
        let first = repeats.find(0x1000, 0x1002, 5, MOVSB);
        let second = repeats.find(0x2000, 0x2002, 5, MOVSB);
        assert_eq!((first, second, repeats.count()), (Some(0), Some(1), 2));
        assert_eq!(repeats.find(0x1000, 0x1002, 5, MOVSB), first);
        assert_eq!(
            (repeats.before(0x1002), repeats.before(0x1000)),
            (first, None)
        );
    }

    #[test]
    fn done_is_seen_once() {
        let mut repeats = Repeats::default();
        repeats.find(0x1000, 0x1002, 5, MOVSB);
        assert!(!repeats.has_run(0, 0));
        assert!(repeats.has_run(0, 10));
        assert!(!repeats.has_run(0, 10));
        assert!(repeats.has_run(0, 11));
    }

    #[test]
    fn another_instruction_at_an_address_ends_the_process() {
        let other = Repeat { width: 4, ..MOVSB };
        for (calls, expected) in [
            (
                &[(0x1000, 5, MOVSB), (0x1000, 5, MOVSB)][..],
                [Verdict::Again; 2],
            ),
            (
                &[(0x1000, 5, MOVSB), (0x1000, 6, MOVSB)],
                [Verdict::Ends, Verdict::Again],
            ),
            (
                &[(0x1000, 5, MOVSB), (0x1000, 5, other)],
                [Verdict::Ends, Verdict::Again],
            ),
            (&[(0x1ffe, 5, MOVSB)], [Verdict::Doubtful, Verdict::Again]),
        ] {
            let mut repeats = Repeats::default();
            for &(address, owner, kind) in calls {
                repeats.find(address, address + 2, owner, kind);
            }
            assert_eq!([repeats.begin_anew(), repeats.begin_anew()], expected);
        }
    }

    #[test]
    fn another_one_in_the_place_of_an_earlier_trials_makes_it_doubtful() {
        let mut repeats = Repeats::default();
        repeats.find(0x1000, 0x1002, 5, MOVSB);
        assert_eq!(repeats.begin_anew(), Verdict::Again);
        repeats.find(0x1000, 0x1002, 6, MOVSB);
        repeats.find(0x2000, 0x2002, 6, MOVSB);
        assert_eq!(repeats.begin_anew(), Verdict::Doubtful);
        repeats.find(0x1000, 0x1002, 6, MOVSB);
        assert_eq!(repeats.begin_anew(), Verdict::Again);
    }

    #[test]
    fn the_bytes_before_a_block_tell_too() {
        let mut page = [0x90u8; 4096];
        page[0x10..0x12].copy_from_slice(&[0xf3, 0xa4]);
        let repeats = Repeats::default();
        assert!(repeats.may_precede(0x7012, Some(&page)));
        assert!(!repeats.may_precede(0x7013, Some(&page)));
        assert!(!repeats.may_precede(0x7000, Some(&page)));
        assert!(!repeats.may_precede(0x7012, None));
    }
}
