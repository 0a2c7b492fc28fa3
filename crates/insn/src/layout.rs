//! Which counter means what: one array, so that translated code reaches all of it, and a region is one difference.

/// At most this many functions are told apart.
pub const MOST_FUNCTIONS: usize = 1 << 14;
/// At most this many pages of programs' code.
pub const MOST_PAGES: usize = 1 << 11;
/// At most this many repeated string instructions.
pub const MOST_REPEATS: usize = 1 << 10;

/// Instructions of function n are counted at n; how often it was entered at `ENTERED` + n.
pub const ENTERED: usize = MOST_FUNCTIONS;
/// Instructions of programs, by page of code.
pub const PAGES: usize = ENTERED + MOST_FUNCTIONS;
/// Three counters for each repeated string instruction, see `RepeatCounter`.
pub const REPEATS: usize = PAGES + MOST_PAGES;
/// All instructions of the kernel; kept only where calls are followed, as is the next one.
pub const KERNEL: usize = REPEATS + 3 * MOST_REPEATS;
/// All instructions of programs.
pub const PROGRAMS: usize = KERNEL + 1;
/// Calls and returns that have started.
pub const FLOWS: usize = PROGRAMS + 1;
/// How many counters there are.
pub const LENGTH: usize = FLOWS + 1;

/// Where the sum is that an instruction of `owner` (a function, or a page of a program) belongs to.
pub fn sum_of(owner: usize) -> usize {
    if owner < PAGES {
        KERNEL
    } else {
        PROGRAMS
    }
}

/// What is counted for a repeated string instruction.
#[derive(Clone, Copy)]
pub enum RepeatCounter {
    /// Times that QEMU ran it: once an iteration, before QEMU 10 once more at the end.
    Passes = 0,
    /// Memory accesses.
    Accesses = 1,
    /// Times that it came to its end.
    Done = 2,
}

/// Where a counter of repeated instruction `number` is.
pub fn repeat(number: usize, counter: RepeatCounter) -> usize {
    REPEATS + 3 * number + counter as usize
}

/// How much of the array is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Functions.
    pub functions: usize,
    /// Pages.
    pub pages: usize,
    /// Repeated instructions.
    pub repeats: usize,
}

impl Used {
    /// All instructions counted so far.
    pub fn total(&self, counters: &[u64]) -> u64 {
        let sum = |from: usize, length: usize| counters[from..from + length].iter().sum::<u64>();
        sum(0, self.functions) + sum(PAGES, self.pages)
    }
}
