//! The marked regions of each run of a program: what every counter rose by, and the instructions of each operation.
//!
//! The agent marks where a run begins and ends, a program marks regions and operations of its own. Where it marks no
//! region, the whole run is one, and one operation.

use crate::decode::Mark;
use crate::layout::Used;
use alloc::vec::Vec;

/// Operations of one run that are kept: 64 MiB of counts, and some 50 MB of text.
pub const MOST_OPERATIONS: usize = 1 << 22;
/// Regions of one run that are written: each has a row for each function.
pub const MOST_REGIONS: u64 = 1 << 14;

/// What is known where a mark is passed.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// All counters.
    pub counters: &'a [u64],
    /// How many of them are in use.
    pub used: Used,
    /// Bytes that string instructions have worked on so far.
    pub bytes: u64,
    /// What is modelled beside that so far (`MachineModel::total`); 0 without a model.
    pub modelled: u64,
    /// Whose mark it is: the task's kernel stack; 0 where that is not known.
    pub task: u64,
}

/// A region under way.
#[derive(Debug)]
struct Open {
    before: Vec<u64>,
    marks: u64,
    at_last_mark: u64,
    bytes_at_last_mark: u64,
    operations: Vec<u64>,
    bytes: Vec<u64>,
    modelled_before: u64,
    modelled_at_last_mark: u64,
    modelled: Vec<u64>,
    task: u64,
}

impl Open {
    fn at(now: Moment<'_>) -> Self {
        Self {
            before: now.counters.to_vec(),
            marks: 0,
            at_last_mark: now.used.total(now.counters),
            bytes_at_last_mark: now.bytes,
            operations: Vec::new(),
            bytes: Vec::new(),
            modelled_before: now.modelled,
            modelled_at_last_mark: now.modelled,
            modelled: Vec::new(),
            task: now.task,
        }
    }

    fn operation(&mut self, now: Moment<'_>) {
        let total = now.used.total(now.counters);
        self.operations.push(total - self.at_last_mark);
        self.at_last_mark = total;
        // Fewer where another program's instruction has taken the place of one that was counted.
        let bytes = now.bytes.saturating_sub(self.bytes_at_last_mark);
        self.bytes.push(bytes);
        self.bytes_at_last_mark = now.bytes;
        self.modelled
            .push(now.modelled - self.modelled_at_last_mark);
        self.modelled_at_last_mark = now.modelled;
        self.marks += 1;
    }

    fn close(self, counters: &[u64], modelled: u64, whole: bool) -> Closed {
        let rises = counters.iter().zip(&self.before);
        Closed {
            counters: rises.map(|(now, before)| now - before).collect(),
            marks: self.marks,
            operations: self.operations,
            bytes: self.bytes,
            modelled: modelled - self.modelled_before,
            each_modelled: self.modelled,
            whole,
        }
    }
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
    /// What was modelled beside its instructions, in all.
    pub modelled: u64,
    /// In each operation.
    pub each_modelled: Vec<u64>,
    /// It ended with its mark, not with the guest.
    pub whole: bool,
}

/// How a program marked its regions in one run, and what is wrong with that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marking {
    /// Regions that have ended.
    pub regions: u64,
    /// Regions that began while another one was under way.
    pub nested: u64,
    /// Operations outside of a region.
    pub loose_operations: u64,
    /// Ends without a beginning.
    pub loose_ends: u64,
    /// Regions that were under way when the program ended.
    pub unclosed: u64,
    /// Operations and regions that were not kept.
    pub dropped: u64,
    /// Marks of another task than the one that began the region.
    pub foreign: u64,
}

/// What is to be written.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// What follows belongs to another run.
    NextRun,
    /// A region has ended.
    Region(Closed),
    /// The run has ended.
    RunEnd(Marking),
}

/// Regions, one after another.
#[derive(Debug, Default)]
pub struct Regions {
    /// The whole run; none once the program has begun a region of its own.
    run: Option<Open>,
    own: Option<Open>,
    kept: usize,
    marking: Marking,
}

impl Regions {
    /// A mark was passed; gives what is to be written then.
    pub fn mark(&mut self, mark: Mark, now: Moment<'_>) -> [Option<Event>; 2] {
        match mark {
            Mark::NextRun => {
                *self = Self::default();
                [Some(Event::NextRun), None]
            }
            Mark::RunBegin => {
                self.run = Some(Open::at(now));
                [None, None]
            }
            Mark::RunEnd => self.end_run(now),
            Mark::Begin => {
                self.marking.nested += u64::from(self.own.is_some());
                self.run = None;
                self.own = Some(Open::at(now));
                [None, None]
            }
            Mark::Operation => {
                self.operation(now);
                [None, None]
            }
            Mark::End => [self.end(now).map(Event::Region), None],
        }
    }

    /// The guest has ended: gives the region that was under way.
    pub fn finish(&mut self, counters: &[u64], modelled: u64) -> Option<Closed> {
        let open = self.own.take().or_else(|| self.run.take())?;
        Some(open.close(counters, modelled, false))
    }

    fn operation(&mut self, now: Moment<'_>) {
        let Some(open) = &mut self.own else {
            self.marking.loose_operations += 1;
            return;
        };
        self.marking.foreign += u64::from(open.task != now.task);
        if self.kept < MOST_OPERATIONS {
            self.kept += 1;
            open.operation(now);
        } else {
            self.marking.dropped += 1;
        }
    }

    fn end(&mut self, now: Moment<'_>) -> Option<Closed> {
        let Some(open) = self.own.take() else {
            self.marking.loose_ends += 1;
            return None;
        };
        self.marking.foreign += u64::from(open.task != now.task);
        self.marking.regions += 1;
        if self.marking.regions > MOST_REGIONS {
            self.marking.dropped += 1;
            return None;
        }
        Some(open.close(now.counters, now.modelled, true))
    }

    fn end_run(&mut self, now: Moment<'_>) -> [Option<Event>; 2] {
        self.marking.unclosed += u64::from(self.own.take().is_some());
        let whole = self.run.take().map(|mut run| {
            run.operation(now);
            // The mark of the run's end is not within it.
            run.marks = 0;
            Event::Region(run.close(now.counters, now.modelled, true))
        });
        [whole, Some(Event::RunEnd(self.marking))]
    }
}

#[cfg(test)]
mod tests;
