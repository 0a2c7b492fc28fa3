//! What each CPU executed, by function, and where it waited: plain state.
//!
//! A block is counted where it starts, whole, as the CPUs' clocks count it. A row is a function of the kernel, or a page
//! of a program's code.

use crate::rounds::MOST;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Two pauses of a CPU in one function with at most so many instructions from one to the other are turns of one loop.
const TURN: u64 = 64;
/// So many functions of locks may lie between one that waits and who wanted the lock.
const DEPTH: usize = 8;
/// The row of nothing: what a CPU came from before it was seen.
pub const NOTHING: u32 = 0;

/// What a function's name says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Nothing that matters here.
    Other,
    /// A part of a lock: who wants the lock has called it.
    Lock,
    /// A task gives its CPU up in it.
    Sleep,
    /// The idle task gives its CPU up in it.
    Idle,
    /// A detour on the way from one function to another: thunks.
    Detour,
}

/// Beginnings of names, without their leading underscores, of what is a part of a lock.
const LOCKS: [&[u8]; 15] = [
    b"raw_spin_",
    b"raw_read_",
    b"raw_write_",
    b"do_raw_",
    b"queued_",
    b"native_queued_",
    b"pv_queued_",
    b"osq_",
    b"mutex_",
    b"ww_mutex_",
    b"rt_mutex_",
    b"rt_spin_",
    b"rwsem_",
    b"down_",
    b"rwbase_",
];
const SLEEPS: [&[u8]; 3] = [b"schedule", b"io_schedule", b"preempt_schedule"];
const DETOURS: [&[u8]; 6] = [
    b"x86_indirect_",
    b"x86_return_thunk",
    b"fentry__",
    b"srso_",
    b"retbleed_",
    b"entry_ibpb",
];

/// What a name says.
pub fn class_of(name: &[u8]) -> Class {
    let start = name.iter().take_while(|&&byte| byte == b'_').count();
    let name = &name[start..];
    let begins = |with: &[&[u8]]| with.iter().any(|prefix| name.starts_with(prefix));
    match name {
        b"schedule_idle" => Class::Idle,
        b"down" => Class::Lock,
        _ if begins(&LOCKS) => Class::Lock,
        _ if begins(&SLEEPS) => Class::Sleep,
        _ if begins(&DETOURS) => Class::Detour,
        _ => Class::Other,
    }
}

/// A block of translated code, in one word.
#[derive(Clone, Copy)]
pub struct Block(usize);

impl Block {
    const ROW: u32 = 32;
    const ENTRY: u32 = 31;

    /// So many instructions of the function or page with this row; `entry`: from its first one on.
    pub fn new(length: usize, row: u32, entry: bool) -> Self {
        Self(length | (row as usize) << Self::ROW | usize::from(entry) << Self::ENTRY)
    }

    /// What `word` gave.
    pub fn of(word: usize) -> Self {
        Self(word)
    }

    /// As one word.
    pub fn word(self) -> usize {
        self.0
    }

    /// Its instructions.
    pub fn length(self) -> usize {
        self.0 & 0xffff
    }

    fn row(self) -> u32 {
        (self.0 >> Self::ROW) as u32
    }

    fn is_entry(self) -> bool {
        self.0 >> Self::ENTRY & 1 == 1
    }
}

/// What one CPU did in one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Instructions, those of waiting included.
    pub instructions: u64,
    /// Times that the first instruction ran.
    pub entered: u64,
    /// Instructions of loops that waited.
    pub waited: u64,
    /// Turns of those loops: each takes the time of a pause beside its instructions.
    pub pauses: u64,
    /// Nanoseconds of waiting for cache lines of other CPUs.
    pub lines: u64,
}

impl Cell {
    fn add(&mut self, now: &Self, before: &Self) {
        self.instructions += now.instructions - before.instructions;
        self.entered += now.entered - before.entered;
        self.waited += now.waited - before.waited;
        self.pauses += now.pauses - before.pauses;
        self.lines += now.lines - before.lines;
    }
}

/// A place: a function, and who called it.
pub type Place = (u32, u32);

/// Instructions and pauses.
type Waiting = (u64, u64);

/// All that is counted, since the guest started or in a region.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// By row, and in a row by CPU.
    pub cells: Vec<Cell>,
    /// Instructions and pauses, by the waiting function and who wanted the lock.
    pub waits: BTreeMap<Place, Waiting>,
    /// Nanoseconds that a CPU was idle, by where the last task on it went to sleep, and by CPU.
    pub idle: BTreeMap<(Place, usize), u64>,
}

impl Counted {
    /// What was counted from `before` to `now` comes in addition.
    fn add(&mut self, now: &Self, before: &Self) {
        self.cells.resize(now.cells.len(), Cell::default());
        let nothing = Cell::default();
        for (index, (sum, cell)) in self.cells.iter_mut().zip(&now.cells).enumerate() {
            sum.add(cell, before.cells.get(index).unwrap_or(&nothing));
        }
        for (place, (instructions, pauses)) in &now.waits {
            let (from, of) = before.waits.get(place).copied().unwrap_or_default();
            let sum = self.waits.entry(*place).or_default();
            *sum = (sum.0 + instructions - from, sum.1 + pauses - of);
        }
        for (place, time) in &now.idle {
            let from = before.idle.get(place).copied().unwrap_or_default();
            *self.idle.entry(*place).or_default() += time - from;
        }
    }
}

/// What a CPU was doing last.
#[derive(Clone, Copy, Default)]
struct Last {
    row: u32,
    /// The last pause: where, and after how many instructions of the CPU.
    pause: (u32, u64),
    /// Where the last task that went to sleep did so.
    sleep: Place,
    /// How long the CPU was idle, as far as it is counted.
    idle: u64,
}

/// Counts of all CPUs.
pub struct Tally {
    cpus: usize,
    classes: Vec<Class>,
    now: Counted,
    /// Which row each CPU was in before it entered this one; by row, and in a row by CPU.
    came_from: Vec<u32>,
    last: [Last; MOST],
    before: Counted,
    region: Counted,
}

impl Tally {
    /// Of so many CPUs.
    pub fn new(cpus: usize) -> Self {
        let mut made = Self {
            cpus,
            classes: Vec::new(),
            now: Counted::default(),
            came_from: Vec::new(),
            last: [Last::default(); MOST],
            before: Counted::default(),
            region: Counted::default(),
        };
        made.row(Class::Other);
        made
    }

    /// A new row.
    pub fn row(&mut self, class: Class) -> u32 {
        self.classes.push(class);
        let cells = self.classes.len() * self.cpus;
        self.now.cells.resize(cells, Cell::default());
        self.came_from.resize(cells, NOTHING);
        self.classes.len() as u32 - 1
    }

    /// A CPU is about to execute a block.
    #[inline(always)]
    pub fn block(&mut self, cpu: usize, block: Block) {
        let row = block.row();
        if self.last[cpu].row != row {
            self.moves(cpu, block);
        }
        let cell = &mut self.now.cells[row as usize * self.cpus + cpu];
        cell.instructions += block.length() as u64;
        cell.entered += u64::from(block.is_entry());
    }

    /// The last instructions of the block that a CPU is in have not run.
    pub fn unrun(&mut self, cpu: usize, instructions: u64) {
        let row = self.last[cpu].row;
        let cell = &mut self.now.cells[row as usize * self.cpus + cpu];
        cell.instructions = cell.instructions.saturating_sub(instructions);
    }

    /// From another function than before.
    fn moves(&mut self, cpu: usize, block: Block) {
        let (row, last) = (block.row(), self.last[cpu].row);
        let class = self.classes[row as usize];
        if class == Class::Detour {
            return;
        }
        if block.is_entry() {
            self.came_from[row as usize * self.cpus + cpu] = last;
            let from = self.classes[last as usize];
            if class == Class::Sleep && !matches!(from, Class::Sleep | Class::Idle) {
                self.last[cpu].sleep = (last, self.wanting(cpu, last));
            }
        }
        self.last[cpu].row = row;
    }

    /// Who called this function; of a part of a lock, who wanted the lock.
    fn wanting(&self, cpu: usize, row: u32) -> u32 {
        let from = |row: u32| self.came_from[row as usize * self.cpus + cpu];
        let mut caller = from(row);
        for _ in 0..DEPTH {
            if self.classes[caller as usize] != Class::Lock {
                break;
            }
            caller = from(caller);
        }
        caller
    }

    /// A CPU is about to pause, after so many instructions of its own.
    pub fn pause(&mut self, cpu: usize, instructions: u64) {
        let row = self.last[cpu].row;
        let (where_before, at) = self.last[cpu].pause;
        let since = instructions - at;
        let waited = match where_before == row && since <= TURN {
            true => since,
            false => 0,
        };
        self.last[cpu].pause = (row, instructions);
        let cell = &mut self.now.cells[row as usize * self.cpus + cpu];
        cell.waited += waited;
        cell.pauses += 1;
        let place = (row, self.wanting(cpu, row));
        let waiting = self.now.waits.entry(place).or_default();
        *waiting = (waiting.0 + waited, waiting.1 + 1);
    }

    /// A CPU has waited so many nanoseconds for a cache line.
    pub fn line(&mut self, cpu: usize, nanoseconds: u64) {
        let row = self.last[cpu].row;
        self.now.cells[row as usize * self.cpus + cpu].lines += nanoseconds;
    }

    /// A CPU has been idle for so long, in nanoseconds since the guest started.
    pub fn idle(&mut self, cpu: usize, nanoseconds: u64) {
        let last = &mut self.last[cpu];
        if nanoseconds > last.idle {
            *self.now.idle.entry((last.sleep, cpu)).or_default() += nanoseconds - last.idle;
            last.idle = nanoseconds;
        }
    }

    /// What was counted so far belongs to no region.
    pub fn reset(&mut self) {
        self.region = Counted::default();
        self.begin();
    }

    /// A region begins.
    pub fn begin(&mut self) {
        self.before = self.now.clone();
    }

    /// A region ends.
    pub fn end(&mut self) {
        self.region.add(&self.now, &self.before);
    }

    /// What was counted in regions since `reset`.
    pub fn region(&self) -> &Counted {
        &self.region
    }
}

#[cfg(test)]
mod tests;
