//! Instructions between a program's marks, of all CPUs together: plain state.

use alloc::vec::Vec;

/// The measured region begins.
pub const REGION_BEGIN: u32 = 0x4b54_0001;
/// The measured region ends.
pub const REGION_END: u32 = 0x4b54_0002;
/// An operation ends.
pub const OPERATION: u32 = 0x4b54_0003;
/// The agent's: a program is about to start.
pub const RUN_BEGIN: u32 = 0x4b54_0005;
/// The agent's: a program has ended.
pub const RUN_END: u32 = 0x4b54_0006;

/// What one program marked.
#[derive(Default)]
pub struct Run {
    /// Regions that came to their end.
    pub regions: u64,
    /// Instructions in them.
    pub instructions: u64,
    /// Instructions of each operation.
    pub operations: Vec<u64>,
    began: Option<u64>,
    last: u64,
}

impl Run {
    /// The program has come to a mark, after so many instructions of all CPUs.
    pub fn mark(&mut self, mark: u32, instructions: u64) {
        match (mark, self.began) {
            (REGION_BEGIN, _) => {
                self.began = Some(instructions);
                self.last = instructions;
            }
            (OPERATION, Some(_)) => {
                self.operations.push(instructions - self.last);
                self.last = instructions;
            }
            (REGION_END, Some(began)) => {
                self.regions += 1;
                self.instructions += instructions - began;
                self.began = None;
            }
            _ => {}
        }
    }

    /// The smallest and the largest of the operations; 0 where there are none.
    pub fn extremes(&self) -> [u64; 2] {
        let smallest = self.operations.iter().min();
        let largest = self.operations.iter().max();
        [smallest, largest].map(|one| one.copied().unwrap_or(0))
    }

    /// The two middle ones of the operations; 0 where there are none.
    pub fn middle(&mut self) -> [u64; 2] {
        self.operations.sort_unstable();
        let half = self.operations.len() / 2;
        match self.operations.len() {
            0 => [0, 0],
            odd if odd % 2 == 1 => [self.operations[half]; 2],
            _ => [self.operations[half - 1], self.operations[half]],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_go_from_mark_to_mark_within_regions() {
        let mut run = Run::default();
        for (mark, instructions) in [
            (OPERATION, 5),
            (REGION_BEGIN, 10),
            (OPERATION, 17),
            (OPERATION, 20),
            (REGION_END, 21),
            (OPERATION, 25),
            (REGION_BEGIN, 30),
            (OPERATION, 35),
            (REGION_END, 36),
            (REGION_END, 40),
        ] {
            run.mark(mark, instructions);
        }
        assert_eq!((run.regions, run.instructions), (2, 17));
        assert_eq!(run.operations, [7, 3, 5]);
        assert_eq!(run.middle(), [5, 5]);
    }

    #[test]
    fn the_middle_of_an_even_number_is_two_values() {
        let mut run = Run {
            operations: vec![9, 1, 4, 3],
            ..Run::default()
        };
        assert_eq!((run.middle(), run.extremes()), ([3, 4], [1, 9]));
        assert_eq!(Run::default().middle(), [0, 0]);
        assert_eq!(Run::default().extremes(), [0, 0]);
    }
}
