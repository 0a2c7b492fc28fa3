//! The CPUs take their turns: what happens where a block starts, a CPU halts, an interrupt comes, and all are idle.

use crate::arguments::Arguments;
use crate::c_library::{give_up, symbol};
use crate::clocks::{own, END, IN_TIMERS, LEFT, START};
use crate::counting::Counting;
use crate::lines::Lines;
use crate::marks::{Run, RUN_BEGIN, RUN_END};
use crate::output::Output;
use crate::qemu::{Cpu, Qemu};
use crate::rounds::{Rounds, MOST};
use crate::tally::Block;
use alloc::boxed::Box;
use core::ffi::{c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};

/// What one `pause` takes. It makes QEMU go on with the next CPU, as it does on hardware with two threads a core.
const PAUSE: i64 = 50;
/// QEMU's exit status where the guest's time is up.
const TIME_IS_UP: c_int = 124;
/// Its exit status where it is not as it should be.
const REFUSED: c_int = 1;
/// Rounds of timers that are due again at once: more is a mistake.
const TIMERS_AT_ONCE: usize = 1000;
const NONE: i64 = -1;

/// When each CPU was interrupted first since it halted or ran; NONE: it was not.
static INTERRUPTED: [AtomicI64; MOST] = [const { AtomicI64::new(NONE) }; MOST];
/// The CPUs, by number.
static CPUS: [AtomicPtr<Cpu>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];

/// All that the CPUs' thread knows. Nobody else has it.
pub struct Engine {
    qemu: &'static Qemu,
    rounds: Rounds,
    current: *const *mut Cpu,
    running: *mut Cpu,
    index: usize,
    yielded: bool,
    deadline: i64,
    instructions: [u64; MOST],
    count: usize,
    run: Run,
    output: Option<Output>,
    /// A program has begun. Before, cache lines cost nothing, so that a saved state is one with a model and without.
    ran: bool,
    /// An instruction that must be the first of its block, and is not: the instructions of the block from it on, and its
    /// place in the translated code.
    not_first: Option<(usize, usize)>,
    /// Who holds cache lines; None where that is not asked for.
    pub lines: Option<Box<Lines>>,
    /// Counts by function; None where that is not asked for.
    pub counting: Option<Box<Counting>>,
}

/// The number of a CPU.
fn number_of(cpu: *mut Cpu) -> Option<usize> {
    let known = CPUS.iter().map(|one| one.load(Relaxed));
    known
        .take_while(|one| !one.is_null())
        .position(|one| one == cpu)
}

/// An interrupt comes to a CPU: one that is idle wakes at this time.
pub fn interrupted(cpu: *mut Cpu, time: i64) {
    if let Some(number) = number_of(cpu) {
        let _ = INTERRUPTED[number].compare_exchange(NONE, time, Relaxed, Relaxed);
    }
}

impl Engine {
    /// As the first block of the guest starts, in the CPUs' thread.
    pub fn new(qemu: &'static Qemu, asked: &Arguments) -> Box<Self> {
        let mut count = 0;
        // SAFETY: it only reads; null is the answer beyond the last.
        while let Some(cpu) = core::ptr::NonNull::new(unsafe { (qemu.cpu)(count as c_int) }) {
            if count == MOST {
                give_up(REFUSED, "more than 64 CPUs");
            }
            CPUS[count].store(cpu.as_ptr(), Relaxed);
            count += 1;
        }
        let rounds = Rounds::new(count, asked.clock, asked.quantum, asked.seed);
        START.store(rounds.start(), Relaxed);
        END.store(rounds.end(), Relaxed);
        LEFT.store(rounds.end() - rounds.start(), Relaxed);
        Box::new(Self {
            qemu,
            rounds,
            current: symbol(c"current_cpu").cast(),
            running: null_mut(),
            index: 0,
            yielded: false,
            deadline: if asked.limit > 0 {
                asked.clock + asked.limit
            } else {
                i64::MAX
            },
            instructions: [0; MOST],
            count,
            run: Run::default(),
            output: Output::open(&asked.out),
            ran: false,
            not_first: None,
            lines: (asked.transfer > 0)
                .then(|| Box::new(Lines::new(asked.transfer, asked.quantum))),
            counting: Counting::asked(&asked.symbols, count),
        })
    }

    /// A block of so many instructions is about to start; `back` is where the translated code goes on.
    #[inline(always)]
    pub fn block(&mut self, length: usize, back: usize) {
        // SAFETY: QEMU's variable for this thread, which lives as long as the thread.
        let cpu = unsafe { *self.current };
        if cpu != self.running {
            self.entered(cpu, back);
        }
        if LEFT.load(Relaxed) <= 0 {
            self.quantum_is_over(cpu, back);
        }
        LEFT.store(LEFT.load(Relaxed) - length as i64, Relaxed);
        self.instructions[self.index] += length as u64;
    }

    /// The same, where functions are counted.
    #[inline(always)]
    pub fn counted_block(&mut self, block: Block, back: usize) {
        self.block(block.length(), back);
        if let Some(counting) = &mut self.counting {
            counting.tally.block(self.index, block);
        }
    }

    /// QEMU runs another CPU than before. It may be one whose turn it is not: QEMU has an order of its own.
    #[cold]
    fn entered(&mut self, cpu: *mut Cpu, back: usize) {
        self.put_away();
        let Some(number) = number_of(cpu) else {
            give_up(REFUSED, "a CPU was added to the running guest");
        };
        self.wake(number);
        if self.whose_turn() != Some(number) {
            self.leave(cpu, back);
        }
        self.take_up(cpu, number);
    }

    /// The CPU that runs has come to the round's end.
    #[cold]
    fn quantum_is_over(&mut self, cpu: *mut Cpu, back: usize) {
        let number = self.index;
        self.put_away();
        if self.whose_turn() != Some(number) {
            self.leave(cpu, back);
        }
        self.take_up(cpu, number);
    }

    fn take_up(&mut self, cpu: *mut Cpu, number: usize) {
        self.running = cpu;
        self.index = number;
        INTERRUPTED[number].store(NONE, Relaxed);
        END.store(self.rounds.end(), Relaxed);
        LEFT.store(self.rounds.end() - self.rounds.clock(number), Relaxed);
        if let Some(counting) = &mut self.counting {
            counting.tally.idle(number, self.rounds.idle(number) as u64);
        }
    }

    /// The CPU that ran does not run any more: its clock is kept.
    fn put_away(&mut self) {
        if !self.running.is_null() {
            self.rounds.reached(self.index, own());
            self.running = null_mut();
        }
        LEFT.store(END.load(Relaxed) - START.load(Relaxed), Relaxed);
    }

    /// Out of the translated code, to QEMU's next CPU. The block has not run.
    fn leave(&mut self, cpu: *mut Cpu, back: usize) -> ! {
        // SAFETY: the CPU executes, and `back` is in the block that is about to start: as QEMU's own helpers do. The
        // jump goes over frames of this crate that hold nothing to be dropped.
        unsafe {
            (self.qemu.exit)(cpu);
            (self.qemu.restore)(cpu, back);
            (self.qemu.leave)(cpu);
        }
        give_up(REFUSED, "QEMU did not leave the translated code")
    }

    fn wake(&mut self, number: usize) {
        self.rounds.wake(number, || taken(number));
    }

    /// The CPU that may run now; None where one was stopped: then all stand still until the machine has stopped.
    fn whose_turn(&mut self) -> Option<usize> {
        let turn = self.rounds.turn();
        let yielded = core::mem::replace(&mut self.yielded, false);
        if !yielded && self.may_run(turn) {
            return Some(turn);
        }
        loop {
            if self.one_is_stopped() {
                return None;
            }
            let qemu = self.qemu;
            let found = self.rounds.pass(|rounds, cpu| can_run(qemu, rounds, cpu));
            if found || self.next_round() {
                return Some(self.rounds.turn());
            }
        }
    }

    fn may_run(&mut self, number: usize) -> bool {
        can_run(self.qemu, &mut self.rounds, number)
    }

    /// All CPUs that are not idle have come to the round's end. False where no CPU can run in the next one.
    fn next_round(&mut self) -> bool {
        self.advance(self.rounds.end());
        let qemu = self.qemu;
        self.rounds.first(|rounds, cpu| can_run(qemu, rounds, cpu))
    }

    /// Time is `now`, timers that are due run, and a round begins.
    fn advance(&mut self, now: i64) {
        self.rounds.finish(now);
        START.store(now, Relaxed);
        if now > self.deadline {
            give_up(TIME_IS_UP, "the guest's time is up");
        }
        let until_timer = self.run_timers();
        self.rounds.begin(until_timer);
        END.store(self.rounds.end(), Relaxed);
        LEFT.store(self.rounds.end() - now, Relaxed);
    }

    /// Run what is due; how long it is then to the next timer.
    fn run_timers(&mut self) -> Option<i64> {
        IN_TIMERS.store(true, Relaxed);
        let mut until_timer = self.qemu.until_timer();
        if until_timer == Some(0) {
            // SAFETY: it only reads.
            let had = unsafe { (self.qemu.is_locked)() };
            let here: *const c_char = c"parallel".as_ptr();
            if !had {
                // SAFETY: this thread does not have it.
                unsafe { (self.qemu.lock)(here, 0) };
            }
            let mut times = 0;
            while until_timer == Some(0) && times < TIMERS_AT_ONCE {
                // SAFETY: the big lock is held.
                unsafe { self.qemu.run_due_timers() };
                until_timer = self.qemu.until_timer();
                times += 1;
            }
            if !had {
                // SAFETY: taken above.
                unsafe { (self.qemu.unlock)() };
            }
        }
        IN_TIMERS.store(false, Relaxed);
        until_timer
    }

    fn one_is_stopped(&self) -> bool {
        CPUS[..self.count].iter().any(|cpu| {
            // SAFETY: a CPU of QEMU's; it only reads.
            unsafe { (self.qemu.is_stopped)(cpu.load(Relaxed)) }
        })
    }

    /// All CPUs are idle, and their thread is about to wait: time goes to the next timer instead. False where there is
    /// none, or the machine is being stopped.
    pub fn all_are_idle(&mut self) -> bool {
        self.put_away();
        if self.one_is_stopped() {
            return false;
        }
        IN_TIMERS.store(true, Relaxed);
        let until_timer = self.qemu.until_timer();
        IN_TIMERS.store(false, Relaxed);
        if let Some(wait) = until_timer {
            self.advance(self.rounds.start() + wait);
        }
        until_timer.is_some()
    }

    /// The CPU that runs is about to halt.
    pub fn halts(&mut self) {
        if !self.running.is_null() {
            INTERRUPTED[self.index].store(NONE, Relaxed);
            self.rounds.halted(self.index, own());
            self.running = null_mut();
            self.yielded = true;
        }
    }

    /// The CPU that runs waits for another one.
    pub fn pauses(&mut self) {
        LEFT.store(LEFT.load(Relaxed) - PAUSE, Relaxed);
        self.yielded = true;
        if let Some(counting) = &mut self.counting {
            let done = self.instructions[self.index];
            counting.tally.pause(self.index, done);
        }
    }

    /// An instruction that must be the first of its block is about to run, `left` instructions before the block's end.
    pub fn is_not_first(&mut self, left: usize, back: usize) {
        self.not_first = Some((left, back));
    }

    /// That instruction has read, and changed nothing yet: it begins again, as the first of another block.
    pub fn begins_again(&mut self) {
        let Some((left, back)) = self.not_first.take() else {
            return;
        };
        // SAFETY: QEMU's variable for this thread.
        let cpu = unsafe { *self.current };
        // SAFETY: the CPU executes; a place that is not the translated code's is left as it is.
        if !unsafe { (self.qemu.restore)(cpu, back) } {
            return;
        }
        LEFT.store(LEFT.load(Relaxed) + left as i64, Relaxed);
        self.instructions[self.index] -= left as u64;
        if let Some(counting) = &mut self.counting {
            counting.tally.unrun(self.index, left as u64);
        }
        // SAFETY: as where the instruction's read faults; the jump goes over frames that hold nothing to be dropped.
        unsafe { (self.qemu.leave)(cpu) };
    }

    /// A locked instruction of the CPU that runs writes at this physical address.
    pub fn locks(&mut self, address: u64) {
        let Some(lines) = self.lines.as_mut().filter(|_| self.ran) else {
            return;
        };
        let time = lines.access(self.index, address, own());
        LEFT.store(LEFT.load(Relaxed) - time, Relaxed);
        if let Some(counting) = &mut self.counting {
            counting.tally.line(self.index, time as u64);
        }
    }

    /// A program has come to a mark, `left` instructions before the end of the block.
    pub fn marks(&mut self, mark: u32, left: u64) {
        let all: u64 = self.instructions[..self.count].iter().sum();
        if let Some(counting) = &mut self.counting {
            for cpu in 0..self.count {
                let idle = self.rounds.idle_so_far(cpu) as u64;
                counting.tally.idle(cpu, idle);
            }
            counting.mark(mark, own());
        }
        match mark {
            RUN_BEGIN => {
                self.run = Run::default();
                self.ran = true;
            }
            RUN_END => self.tell(),
            _ => self.run.mark(mark, all - left),
        }
    }

    fn tell(&mut self) {
        if let Some(output) = &self.output {
            let cpus = &self.instructions[..self.count];
            let counted = self.counting.as_mut().map(|counting| counting.told());
            output.run(&mut self.run, &self.rounds, cpus, counted);
        }
    }
}

fn taken(number: usize) -> Option<i64> {
    let at = INTERRUPTED[number].swap(NONE, Relaxed);
    (at != NONE).then_some(at)
}

fn can_run(qemu: &Qemu, rounds: &mut Rounds, number: usize) -> bool {
    let cpu = CPUS[number].load(Relaxed);
    // SAFETY: a CPU of QEMU's; it only reads.
    if unsafe { (qemu.is_idle)(cpu) } {
        return false;
    }
    rounds.wake(number, || taken(number));
    rounds.is_behind(number)
}
