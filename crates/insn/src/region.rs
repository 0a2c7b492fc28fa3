//! The marked region: what every counter rose by, and the instructions of each operation.

use crate::decode::Mark;
use crate::layout::Used;
use alloc::vec::Vec;

/// A region under way.
#[derive(Debug)]
struct Open {
    before: Vec<u64>,
    marks: u64,
    at_last_mark: u64,
    bytes_at_last_mark: u64,
    operations: Vec<u64>,
    bytes: Vec<u64>,
}

/// A region that has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed {
    /// What each counter rose by.
    pub counters: Vec<u64>,
    /// Marks within the region, without the two at its ends.
    pub marks: u64,
    /// Instructions from one mark to the next, up to the last operation's.
    pub operations: Vec<u64>,
    /// Bytes that string instructions worked on, in each of them.
    pub bytes: Vec<u64>,
    /// It ended with its mark, not with the guest.
    pub whole: bool,
}

/// Regions, one after another.
#[derive(Debug, Default)]
pub struct Regions {
    open: Option<Open>,
}

impl Regions {
    /// A mark was passed; gives the region that has ended with it. A region that begins again starts from there.
    /// `bytes`: those that string instructions have worked on so far.
    pub fn mark(&mut self, mark: Mark, counters: &[u64], used: Used, bytes: u64) -> Option<Closed> {
        match mark {
            Mark::Begin => {
                let at_last_mark = used.total(counters);
                self.open = Some(Open {
                    before: counters.to_vec(),
                    marks: 0,
                    at_last_mark,
                    bytes_at_last_mark: bytes,
                    operations: Vec::new(),
                    bytes: Vec::new(),
                });
                None
            }
            Mark::Operation => {
                if let Some(open) = &mut self.open {
                    let now = used.total(counters);
                    open.operations.push(now - open.at_last_mark);
                    open.at_last_mark = now;
                    // Fewer where another program's instruction has taken the place of one that was counted.
                    open.bytes
                        .push(bytes.saturating_sub(open.bytes_at_last_mark));
                    open.bytes_at_last_mark = bytes;
                    open.marks += 1;
                }
                None
            }
            Mark::End => self.end(counters, true),
        }
    }

    /// The guest has ended: gives the region that was under way.
    pub fn finish(&mut self, counters: &[u64]) -> Option<Closed> {
        self.end(counters, false)
    }

    fn end(&mut self, counters: &[u64], whole: bool) -> Option<Closed> {
        let open = self.open.take()?;
        let counters = counters
            .iter()
            .zip(&open.before)
            .map(|(now, before)| now - before)
            .collect();
        Some(Closed {
            counters,
            marks: open.marks,
            operations: open.operations,
            bytes: open.bytes,
            whole,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::LENGTH;

    const USED: Used = Used {
        functions: 3,
        pages: 0,
        repeats: 0,
    };

    #[test]
    fn a_region_is_the_difference_of_its_ends() {
        let mut counters = alloc::vec![5u64; LENGTH];
        let mut regions = Regions::default();
        assert_eq!(regions.mark(Mark::Begin, &counters, USED, 0), None);
        counters[2] += 7;
        assert_eq!(regions.mark(Mark::Operation, &counters, USED, 4096), None);
        counters[1] += 1;
        regions.mark(Mark::Operation, &counters, USED, 4100);
        counters[0] += 2;
        let closed = regions.mark(Mark::End, &counters, USED, 0).unwrap();
        assert_eq!(closed.counters[..4], [2, 1, 7, 0]);
        assert_eq!(
            (closed.marks, closed.operations, closed.whole),
            (2, alloc::vec![7, 1], true)
        );
        assert_eq!(closed.bytes, [4096, 4]);
    }

    #[test]
    fn marks_outside_a_region_do_nothing() {
        let counters = alloc::vec![0u64; LENGTH];
        let mut regions = Regions::default();
        assert_eq!(regions.mark(Mark::Operation, &counters, USED, 0), None);
        assert_eq!(regions.mark(Mark::End, &counters, USED, 0), None);
        assert_eq!(regions.finish(&counters), None);
    }

    #[test]
    fn a_region_without_an_end_is_not_whole() {
        let counters = alloc::vec![0u64; LENGTH];
        let mut regions = Regions::default();
        regions.mark(Mark::Begin, &counters, USED, 0);
        assert!(!regions.finish(&counters).unwrap().whole);
    }
}
