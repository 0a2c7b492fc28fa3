//! Which CPU holds a cache line, and what it costs to have it: locked instructions only. Plain state.
//!
//! A line goes from CPU to CPU, first come, first served, and each time takes `transfer` nanoseconds. Who finds it at another
//! CPU waits until those before it have had it, and then for its own transfer. So k CPUs that always want a line have it once
//! in k transfers each: together they do one access a transfer, however many they are and however long a round is.
//!
//! CPUs run one after another within a round. Were each charged for what the others have done so far, the first would have a
//! line to itself for a round. So the charge follows from paces: how long each CPU works between two accesses to the line,
//! waiting left out. They say how often the line comes back to a CPU where all of its time is spent at CPUs that wait for it
//! (`cycle`), and how many accesses of others fall between two of a CPU's own.

use crate::rounds::MOST;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Bytes of a line, as a power of two.
const BITS: u32 = 6;
/// Set where several CPUs have had the line.
const SHARED: u8 = 0x80;
/// Parts of a nanosecond in which paces are kept.
const PARTS: i64 = 16;
/// Of the last gaps between accesses so many make a pace.
const GAPS: i64 = 8;
/// Parts of a nanosecond in which charges are: a part of an access in a thousand is not lost.
const FINE: i64 = 1024;
/// One, where shares of a line's time are added up.
const WHOLE: i64 = 1 << 20;

/// How one CPU uses a line that several have had.
#[derive(Clone, Copy, Default)]
struct Pace {
    /// When its last access was done, by its own clock.
    done: i64,
    /// How long it works between two accesses, in parts of a nanosecond; None: it has had one only.
    work: Option<i64>,
    /// What it still has to pay, less than a nanosecond.
    owed: i64,
}

impl Pace {
    /// So long a time has passed since its last access.
    fn add(&mut self, gap: i64, most: i64) {
        let gap = gap.min(most) * PARTS;
        self.work = Some(self.work.map_or(gap, |work| work + (gap - work) / GAPS));
    }

    /// Its work and a transfer, in nanoseconds, where it uses the line at this time; None where it does not.
    fn period(&self, time: i64, transfer: i64, round: i64) -> Option<i64> {
        let work = self.work? / PARTS;
        (time - self.done <= 2 * (round + work)).then_some(work + transfer)
    }
}

/// All lines of the guest's memory.
pub struct Lines {
    transfer: i64,
    round: i64,
    /// By line: 0, or the number of the CPU that had it last, and 1.
    holders: Vec<u8>,
    shared: BTreeMap<usize, Box<[Pace; MOST]>>,
}

impl Lines {
    /// A transfer takes so many nanoseconds, a round `round`.
    pub fn new(transfer: i64, round: i64) -> Self {
        Self {
            transfer,
            round,
            holders: Vec::new(),
            shared: BTreeMap::new(),
        }
    }

    /// A CPU's locked instruction writes at this physical address when its clock is at `time`: the nanoseconds that it takes
    /// longer.
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
        self.contended(cpu, line, time, is_elsewhere)
    }

    #[cold]
    fn contended(&mut self, cpu: usize, line: usize, time: i64, is_elsewhere: bool) -> i64 {
        let (transfer, round) = (self.transfer, self.round);
        let paces = self
            .shared
            .entry(line)
            .or_insert_with(|| Box::new([Pace::default(); MOST]));
        let gap = time - paces[cpu].done;
        if paces[cpu].done > 0 {
            paces[cpu].add(gap.max(0), transfer * MOST as i64);
        }
        let mut periods = [0; MOST];
        let mut others = 0;
        for (other, pace) in paces.iter().enumerate() {
            if let Some(period) = pace.period(time, transfer, round).filter(|_| other != cpu) {
                periods[others] = period;
                others += 1;
            }
        }
        let pace = &mut paces[cpu];
        let exact = match pace.work {
            Some(work) if others > 0 => {
                periods[others] = work / PARTS + transfer;
                let last = if gap > 2 * round {
                    Some(is_elsewhere)
                } else {
                    None
                };
                pace.owed + charge(&periods[..=others], gap.max(0), transfer, last)
            }
            _ => pace.owed + i64::from(is_elsewhere) * transfer * FINE,
        };
        pace.owed = exact % FINE;
        pace.done = time + exact / FINE;
        exact / FINE
    }
}

/// What an access takes, in parts of a nanosecond, `gap` nanoseconds after the CPU's last one. `periods`: each CPU's that uses the
/// line, this one's last. `is_elsewhere`: whether another one has had it since, where so much time has passed that all have run.
fn charge(periods: &[i64], gap: i64, transfer: i64, is_elsewhere: Option<bool>) -> i64 {
    let cycle = cycle(periods, transfer);
    let others = &periods[..periods.len() - 1];
    // The share of the line's time that the others' transfers take. Each of them takes it away from this CPU, which then
    // needs a transfer to have it back.
    let share: i64 = others
        .iter()
        .map(|&period| transfer * WHOLE / period.max(cycle))
        .sum();
    let left = WHOLE - 2 * share;
    let part = match is_elsewhere {
        Some(is_elsewhere) => i64::from(is_elsewhere) * FINE,
        None if left <= 0 => FINE,
        None => (FINE * share * gap / (transfer * left)).min(FINE),
    };
    part * (cycle.max(2 * transfer) - gap).max(transfer)
}

/// How often a line comes back to a CPU that always waits for it, in nanoseconds; 0 where nobody has to wait.
///
/// CPUs with a longer period take the line when they come to it, the others share what is left of its time.
fn cycle(periods: &[i64], transfer: i64) -> i64 {
    let mut waiting = periods.len();
    let mut cycle = waiting as i64 * transfer;
    loop {
        let longer = || periods.iter().filter(|&&period| period > cycle);
        let still = periods.len() - longer().count();
        if still == waiting || still == 0 {
            return if still == 0 { 0 } else { cycle };
        }
        let taken: i64 = longer().map(|period| transfer * WHOLE / period).sum();
        waiting = still;
        cycle = waiting as i64 * transfer * WHOLE / (WHOLE - taken);
    }
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
    use crate::draws::Draws;
    use alloc::vec;

    const TRANSFER: i64 = 40;
    const TIME: i64 = 600_000;
    /// From here on accesses count: in the first round the first CPU knows of no other.
    const COUNTED_FROM: i64 = TIME / 3;

    /// Nanoseconds from access to access of each CPU, in rounds of this length: CPUs work between two, each as long as its
    /// list says, one time after the other.
    fn in_rounds(works: &[&[i64]], round: i64) -> Vec<f64> {
        let mut lines = Lines::new(TRANSFER, round);
        let mut draws = Draws::new(7);
        let mut clocks: Vec<i64> = works
            .iter()
            .map(|_| 1 + draws.below(round as u64) as i64)
            .collect();
        let (mut done, mut counted) = (vec![0; works.len()], vec![0; works.len()]);
        for start in (0..TIME).step_by(round as usize) {
            let first = draws.below(works.len() as u64) as usize;
            for cpu in (0..works.len()).map(|place| (first + place) % works.len()) {
                while clocks[cpu] < start + round {
                    let waited = lines.access(cpu, 0x1000, clocks[cpu]);
                    clocks[cpu] += waited + works[cpu][done[cpu] % works[cpu].len()];
                    done[cpu] += 1;
                    counted[cpu] += i64::from(clocks[cpu] >= COUNTED_FROM);
                }
            }
        }
        apart(&counted)
    }

    /// The same of a real queue: whoever comes next in time is served next.
    fn in_a_queue(works: &[&[i64]]) -> Vec<f64> {
        let mut clocks: Vec<i64> = (0..works.len() as i64).collect();
        let (mut done, mut counted) = (vec![0; works.len()], vec![0; works.len()]);
        let (mut free, mut holder) = (0, usize::MAX);
        while let Some(cpu) = (0..works.len())
            .filter(|&cpu| clocks[cpu] < TIME)
            .min_by_key(|&cpu| clocks[cpu])
        {
            if holder != cpu || free > clocks[cpu] {
                free = free.max(clocks[cpu]) + TRANSFER;
                clocks[cpu] = free;
                holder = cpu;
            }
            clocks[cpu] += works[cpu][done[cpu] % works[cpu].len()];
            done[cpu] += 1;
            counted[cpu] += i64::from(clocks[cpu] >= COUNTED_FROM);
        }
        apart(&counted)
    }

    fn apart(counted: &[i64]) -> Vec<f64> {
        let time = (TIME - COUNTED_FROM) as f64;
        counted.iter().map(|&count| time / count as f64).collect()
    }

    fn assert_near(measured: f64, expected: f64, part: f64, what: &str) {
        assert!(
            (measured / expected - 1.0).abs() < part,
            "{what}: {measured}, expected {expected}"
        );
    }

    #[test]
    fn a_line_of_ones_own_is_free_and_anothers_takes_a_transfer() {
        let mut all = Lines::new(TRANSFER, 1000);
        assert_eq!(
            [0, 1, 63].map(|byte| all.access(0, 0x1000 + byte, 1)),
            [0; 3]
        );
        assert_eq!(all.access(1, 0x1000, 10_000), TRANSFER);
        assert_eq!(all.access(1, 0x1000, 20_000), 0);
        assert_eq!(all.access(0, 0x1040, 20_000), 0, "another line");
        assert_eq!(all.access(0, 0x1000, 30_000), TRANSFER);
    }

    #[test]
    fn cpus_that_always_want_a_line_have_it_once_in_as_many_transfers_as_they_are() {
        for round in [25, 100, 1000, 10_000] {
            for cpus in [2, 4, 8, 16, 64] {
                let each = in_rounds(&vec![&[5][..]; cpus], round);
                let together = each.iter().map(|apart| 1.0 / apart).sum::<f64>().recip();
                let what = format!("{cpus} CPUs, {round} ns");
                assert_near(together, TRANSFER as f64, 0.01, &what);
                for apart in each {
                    assert_near(apart, (cpus as i64 * TRANSFER) as f64, 0.02, &what);
                }
            }
        }
    }

    #[test]
    fn nobody_waits_longer_than_until_the_line_is_free() {
        // Four CPUs that work long enough between two accesses never meet; a little less, and all wait.
        for (work, expected) in [(120, 160), (200, 240), (2000, 2040), (80, 160), (40, 160)] {
            for round in [25, 100, 1000] {
                for measured in in_rounds(&[&[work][..]; 4], round) {
                    assert_near(
                        measured,
                        expected as f64,
                        0.01,
                        &format!("{work} ns, {round} ns"),
                    );
                }
            }
        }
    }

    #[test]
    fn cpus_of_unlike_paces_have_the_line_as_often_as_in_a_queue() {
        let mixes: [&[&[i64]]; 5] = [
            &[&[5], &[200]],
            &[&[5], &[2000]],
            &[&[5], &[200], &[200], &[200]],
            &[&[5, 2000], &[5, 2000], &[5, 2000], &[5, 2000]],
            &[
                &[13, 90, 47, 5],
                &[13, 90, 47, 5],
                &[13, 90, 47, 5],
                &[13, 90, 47, 5],
            ],
        ];
        for works in mixes {
            let expected = in_a_queue(works);
            for (measured, expected) in in_rounds(works, 100).iter().zip(expected) {
                assert_near(*measured, expected, 0.05, &format!("{works:?}"));
            }
        }
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
