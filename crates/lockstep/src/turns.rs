//! Whose turn it is: the main loop's, or the guest's CPU's.
//!
//! What the two threads are about to do is told here, and which of them is which shows in the order of their calls:
//! the main thread waits, on the big lock, for the CPU's thread to be made (`qemu_init_vcpu`), and the first other
//! thread that waits on that lock is the CPU's. Others wait on it later (the thread that saves a snapshot): they are
//! known by their numbers.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, Ordering::SeqCst};

/// The C library's `pthread_cond_t`.
pub type Condition = c_void;
/// The C library's `pthread_mutex_t`.
pub type Mutex = c_void;

/// What is known of QEMU's two threads.
pub struct Turns {
    /// QEMU's big lock.
    big_lock: AtomicPtr<Mutex>,
    /// What the CPU's thread waits for; null until it has waited once.
    halt: AtomicPtr<Condition>,
    /// The kernel's number of the CPU's thread; 0 until it has waited once.
    cpu_thread: AtomicI64,
    /// 1 while the CPU's thread waits, 0 from the moment when it is woken.
    cpu_waits: AtomicU32,
}

impl Turns {
    /// Nothing is known yet, and nobody is held up.
    pub const fn new() -> Self {
        Self {
            big_lock: AtomicPtr::new(null_mut()),
            halt: AtomicPtr::new(null_mut()),
            cpu_thread: AtomicI64::new(0),
            cpu_waits: AtomicU32::new(1),
        }
    }

    /// Whether the CPU's thread has waited once, which shows who it is.
    pub fn cpu_is_known(&self) -> bool {
        !self.halt.load(SeqCst).is_null()
    }

    /// The main thread is about to wait for a condition, with this lock.
    pub fn main_thread_waits(&self, mutex: *mut Mutex) {
        if !self.cpu_is_known() {
            self.big_lock.store(mutex, SeqCst);
        }
    }

    /// The thread of this number, another than the main one, is about to wait for `condition` with this lock. Gives
    /// whether it is the CPU's.
    pub fn other_thread_waits(
        &self,
        thread: i64,
        condition: *mut Condition,
        mutex: *mut Mutex,
    ) -> bool {
        if mutex != self.big_lock.load(SeqCst) {
            return false;
        }
        let known = (self.cpu_thread).compare_exchange(0, thread, SeqCst, SeqCst);
        let is_cpu = known.is_ok() || known == Err(thread);
        if is_cpu {
            let _ = (self.halt).compare_exchange(null_mut(), condition, SeqCst, SeqCst);
            self.cpu_waits.store(1, SeqCst);
        }
        is_cpu
    }

    /// Whether this is what the CPU's thread waits for.
    pub fn wakes_cpu(&self, condition: *mut Condition) -> bool {
        condition == self.halt.load(SeqCst)
    }

    /// The CPU's thread has been woken, or is about to be.
    pub fn cpu_starts(&self) {
        self.cpu_waits.store(0, SeqCst);
    }

    /// Whether the CPU's thread runs.
    pub fn cpu_runs(&self) -> bool {
        self.cpu_waits.load(SeqCst) == 0
    }

    /// The word to sleep on until the CPU's thread waits: 0 while it runs.
    pub fn word(&self) -> *mut u32 {
        self.cpu_waits.as_ptr()
    }
}

/// How long the main loop waits for a CPU that does not idle: for so much of what the process computes, however long
/// that takes on a busy host. A second of the host's clock made load into results: where the CPU's thread had a
/// twentieth of a core, the main loop came out in the middle of what takes 50 ms.
pub struct Patience {
    begun: u64,
    last: u64,
    still: u32,
}

impl Patience {
    /// Nanoseconds of CPU.
    const COMPUTED: u64 = 1_000_000_000;
    /// Less than this in a look, in nanoseconds of CPU, is nothing: the CPU's thread then waits for something else.
    const MOVES: u64 = 100_000;
    /// After so many looks in which nothing moved the main loop goes on.
    const LOOKS: u32 = 30;

    /// From now on; `used` is the CPU time of the process, in nanoseconds.
    pub const fn new(used: u64) -> Self {
        Self {
            begun: used,
            last: used,
            still: 0,
        }
    }

    /// Whether it has waited long enough, at this look.
    pub fn is_at_its_end(&mut self, used: u64) -> bool {
        let moved = used.saturating_sub(self.last) >= Self::MOVES;
        self.still = if moved { 0 } else { self.still + 1 };
        self.last = used;
        used.saturating_sub(self.begun) >= Self::COMPUTED || self.still >= Self::LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn patience_lasts_for_a_second_of_cpu_however_long_that_takes() {
        let mut patience = Patience::new(500 * MS);
        assert!((1..=99).all(|look| !patience.is_at_its_end((500 + 10 * look) * MS)));
        assert!(patience.is_at_its_end(1500 * MS));
    }

    #[test]
    fn patience_ends_where_nothing_moves_for_thirty_looks_in_a_row() {
        let mut patience = Patience::new(0);
        assert!((0..29).all(|_| !patience.is_at_its_end(0)));
        assert!(!patience.is_at_its_end(MS), "it moved");
        assert!((0..29).all(|_| !patience.is_at_its_end(MS)));
        assert!(patience.is_at_its_end(MS));
    }

    /// Something with an address.
    fn at(address: usize) -> *mut c_void {
        core::ptr::without_provenance_mut(address)
    }

    const CPU: i64 = 101;
    const SAVER: i64 = 102;
    const BIG_LOCK: usize = 0x10;
    const OTHER_LOCK: usize = 0x20;
    const CREATED: usize = 0x30;
    const HALT: usize = 0x40;

    /// As QEMU starts: the main thread waits for the CPU's thread, which then waits to be let go.
    fn started() -> Turns {
        let turns = Turns::new();
        turns.main_thread_waits(at(BIG_LOCK));
        assert!(turns.other_thread_waits(CPU, at(HALT), at(BIG_LOCK)));
        turns
    }

    #[test]
    fn nobody_is_held_up_before_the_cpu_is_known() {
        let turns = Turns::new();
        assert!(!turns.cpu_is_known() && !turns.cpu_runs());
        turns.main_thread_waits(at(BIG_LOCK));
        assert!(!turns.cpu_is_known() && !turns.cpu_runs());
    }

    #[test]
    fn the_first_other_thread_that_waits_on_the_main_threads_lock_is_the_cpus() {
        let turns = Turns::new();
        turns.main_thread_waits(at(OTHER_LOCK));
        turns.main_thread_waits(at(BIG_LOCK));
        assert!(!turns.other_thread_waits(CPU, at(CREATED), at(OTHER_LOCK)));
        assert!(!turns.cpu_is_known());
        assert!(turns.other_thread_waits(CPU, at(HALT), at(BIG_LOCK)));
        assert!(turns.cpu_is_known() && turns.wakes_cpu(at(HALT)) && !turns.wakes_cpu(at(CREATED)));
    }

    #[test]
    fn another_thread_that_waits_on_the_main_threads_lock_later_is_not_the_cpus() {
        let turns = started();
        assert!(!turns.other_thread_waits(SAVER, at(CREATED), at(BIG_LOCK)));
        assert!(!turns.cpu_runs());
        turns.cpu_starts();
        assert!(!turns.other_thread_waits(SAVER, at(HALT), at(BIG_LOCK)));
        assert!(turns.cpu_runs());
        assert!(turns.other_thread_waits(CPU, at(HALT), at(BIG_LOCK)));
    }

    #[test]
    fn what_the_cpu_waits_for_and_with_which_lock_is_learned_once() {
        let turns = started();
        turns.main_thread_waits(at(OTHER_LOCK));
        assert!(!turns.other_thread_waits(CPU, at(CREATED), at(OTHER_LOCK)));
        assert!(turns.other_thread_waits(CPU, at(CREATED), at(BIG_LOCK)));
        assert!(turns.wakes_cpu(at(HALT)) && !turns.wakes_cpu(at(CREATED)));
    }

    #[test]
    fn the_cpu_runs_from_when_it_is_woken_until_it_waits_again() {
        let turns = started();
        assert!(!turns.cpu_runs());
        turns.cpu_starts();
        assert!(turns.cpu_runs());
        turns.other_thread_waits(CPU, at(CREATED), at(OTHER_LOCK));
        assert!(
            turns.cpu_runs(),
            "another thread's waiting is not the CPU's"
        );
        turns.other_thread_waits(CPU, at(HALT), at(BIG_LOCK));
        assert!(!turns.cpu_runs());
    }

    #[test]
    fn the_word_to_sleep_on_is_zero_while_the_cpu_runs() {
        let turns = started();
        // SAFETY: the word is the turns' own, and there is one thread.
        assert_eq!(unsafe { *turns.word() }, 1);
        turns.cpu_starts();
        // SAFETY: as above.
        assert_eq!(unsafe { *turns.word() }, 0);
    }
}
