//! Which CPU holds a cache line, and what it costs to have it: locked instructions only. Plain state.
//!
//! A line that another CPU had last takes `transfer` nanoseconds. CPUs run one after the other within a round, so that the
//! first would have a contended line to itself for all of it: for lines that several CPUs accessed in this round or in the one
//! before, the cost is that of their accesses taken in turns (`in_turns`): of one CPU's, as many find the line elsewhere as
//! there are of others, and all where another one waits for it all the time; each then waits for those CPUs that wait for it
//! too, as far as the line is busy at all. Where it always is, k CPUs take k transfers each: together they do one access a
//! transfer, however many they are.

use crate::rounds::MOST;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Bytes of a line, as a power of two.
const BITS: u32 = 6;
/// Set where several CPUs have had the line.
const SHARED: u8 = 0x80;

/// What one CPU did with a line in a round.
#[derive(Clone, Copy, Default)]
struct Use {
    accesses: i64,
    /// Nanoseconds that it waited for it.
    waited: i64,
}

/// A line that several CPUs have had.
struct Shared {
    round: i64,
    now: [Use; MOST],
    before: [Use; MOST],
}

impl Shared {
    /// In this round; counts of older ones than the last are nothing.
    fn roll(&mut self, round: i64) {
        if round != self.round {
            self.before = match round == self.round + 1 {
                true => self.now,
                false => [Use::default(); MOST],
            };
            self.now = [Use::default(); MOST];
            self.round = round;
        }
    }

    /// The more that it did in this round or the last.
    fn most(&self, cpu: usize) -> Use {
        let (now, before) = (self.now[cpu], self.before[cpu]);
        Use {
            accesses: now.accesses.max(before.accesses),
            waited: now.waited.max(before.waited),
        }
    }
}

/// The CPUs beside one.
#[derive(Default)]
struct Others {
    cpus: i64,
    accesses: i64,
    /// Of the one that waited most.
    waited: i64,
}

/// All lines of the guest's memory.
pub struct Lines {
    transfer: i64,
    length: i64,
    /// By line: 0, or the number of the CPU that had it last, and 1.
    holders: Vec<u8>,
    shared: BTreeMap<usize, Box<Shared>>,
}

impl Lines {
    /// A transfer takes so many nanoseconds, a round `length`.
    pub fn new(transfer: i64, length: i64) -> Self {
        Self {
            transfer,
            length,
            holders: Vec::new(),
            shared: BTreeMap::new(),
        }
    }

    /// A CPU's locked instruction writes at this physical address at this time: the nanoseconds that it takes longer.
    pub fn access(&mut self, cpu: usize, address: u64, time: i64) -> i64 {
        let line = (address >> BITS) as usize;
        if line >= self.holders.len() {
            self.holders.resize((line + 1).next_power_of_two(), 0);
        }
        let before = self.holders[line];
        let (holder, me) = (before & !SHARED, cpu as u8 + 1);
        let is_elsewhere = holder != 0 && holder != me;
        if before & SHARED == 0 && !is_elsewhere {
            self.holders[line] = me;
            return 0;
        }
        self.holders[line] = me | SHARED;
        self.contended(cpu, line, time / self.length, is_elsewhere)
    }

    #[cold]
    fn contended(&mut self, cpu: usize, line: usize, round: i64, is_elsewhere: bool) -> i64 {
        let shared = self.shared.entry(line).or_insert_with(|| {
            Box::new(Shared {
                round,
                now: [Use::default(); MOST],
                before: [Use::default(); MOST],
            })
        });
        shared.roll(round);
        shared.now[cpu].accesses += 1;
        let mine = shared.most(cpu).accesses;
        let mut others = Others::default();
        for other in (0..MOST).filter(|&other| other != cpu) {
            let used = shared.most(other);
            others.cpus += i64::from(used.accesses > 0);
            others.accesses += used.accesses;
            others.waited = others.waited.max(used.waited);
        }
        let time = match others.accesses {
            0 if is_elsewhere => self.transfer,
            0 => 0,
            _ => in_turns(self.transfer, self.length, mine, &others),
        };
        if let Some(shared) = self.shared.get_mut(&line) {
            shared.now[cpu].waited += time;
        }
        time
    }
}

/// What one of `mine` accesses in a round of this length takes, beside those of others.
fn in_turns(transfer: i64, length: i64, mine: i64, others: &Others) -> i64 {
    // Of `length` accesses, so many find the line elsewhere. A CPU that waits all the time is there after each.
    let by_count = mine.min(others.accesses) * length / mine;
    let elsewhere = by_count.max(others.waited.min(length));
    let busy = (others.accesses * transfer).min(length);
    transfer * elsewhere * (length + others.cpus * busy) / (length * length)
}

/// Whether these bytes are an instruction that locks the line it writes: a LOCK prefix, or `xchg` with memory.
pub fn is_locked(bytes: &[u8]) -> bool {
    let prefix = |byte: &u8| {
        matches!(
            byte,
            0x66 | 0x67 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65
        )
    };
    let end = bytes
        .iter()
        .position(|byte| !prefix(byte))
        .unwrap_or(bytes.len());
    let rest = match &bytes[end..] {
        [0xf0, ..] => return true,
        [rex, rest @ ..] if rex & 0xf0 == 0x40 => rest,
        rest => rest,
    };
    matches!(rest, [0x86 | 0x87, operands, ..] if operands >> 6 != 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSFER: i64 = 40;
    const ROUND: i64 = 1000;

    fn lines() -> Lines {
        Lines::new(TRANSFER, ROUND)
    }

    /// Accesses that `cpus` CPUs finish in so many rounds, each doing nothing else but `work` nanoseconds between two.
    fn done(cpus: usize, work: i64, rounds: i64) -> i64 {
        let mut all = lines();
        let mut clocks = vec![0; cpus];
        let mut count = 0;
        for round in 1..=rounds {
            for (cpu, clock) in clocks.iter_mut().enumerate() {
                while *clock < round * ROUND {
                    *clock += work + all.access(cpu, 0x1000, (round - 1) * ROUND);
                    count += 1;
                }
            }
        }
        count
    }

    #[test]
    fn a_line_of_ones_own_is_free_and_anothers_takes_a_transfer() {
        let mut all = lines();
        assert_eq!(
            [0, 1, 63].map(|byte| all.access(0, 0x1000 + byte, 0)),
            [0; 3]
        );
        assert_eq!(all.access(1, 0x1000, 10 * ROUND), TRANSFER);
        assert_eq!(all.access(1, 0x1000, 20 * ROUND), 0);
        assert_eq!(all.access(0, 0x1040, 20 * ROUND), 0, "another line");
    }

    #[test]
    fn a_contended_line_does_one_access_a_transfer_however_many_cpus_there_are() {
        let alone = done(1, 5, 200);
        let contended = [2, 4, 8].map(|cpus| done(cpus, 5, 200));
        assert_eq!(alone, 200 * ROUND / 5);
        let most = 200 * ROUND / TRANSFER;
        for count in contended {
            assert!(
                (most * 7 / 10..=most * 13 / 10).contains(&count),
                "{contended:?}, at most {most}"
            );
        }
    }

    #[test]
    fn who_accesses_a_line_seldom_waits_for_nobody() {
        let (one, four) = (done(1, 5000, 400), done(4, 5000, 400));
        assert!(four > one * 39 / 10, "{one} {four}");
    }

    #[test]
    fn locked_instructions_are_told_by_their_bytes() {
        let table: [(&[u8], bool); 8] = [
            (&[0xf0, 0x48, 0x0f, 0xb1, 0x0f], true),
            (&[0x65, 0xf0, 0xff, 0x00], true),
            (&[0x3e, 0x66, 0xf0, 0x0f, 0xc1, 0x07], true),
            (&[0x87, 0x07], true),
            (&[0x48, 0x87, 0x45, 0x00], true),
            (&[0x48, 0x87, 0xc0], false),
            (&[0x48, 0x89, 0xf0], false),
            (&[], false),
        ];
        for (bytes, wanted) in table {
            assert_eq!(is_locked(bytes), wanted, "{bytes:x?}");
        }
    }
}
