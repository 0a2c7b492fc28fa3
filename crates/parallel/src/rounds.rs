//! The CPUs' clocks, and whose turn it is: plain state, no system call.

use crate::draws::Draws;

/// CPUs, at most.
pub const MOST: usize = 64;
/// A round that a timer cuts short is this long at least, so that time always passes.
const SHORTEST: i64 = 20;

/// The clocks of all CPUs, in nanoseconds of the guest's time, and the round that they are in.
pub struct Rounds {
    quantum: i64,
    count: usize,
    start: i64,
    end: i64,
    clocks: [i64; MOST],
    awake: [bool; MOST],
    idle: [i64; MOST],
    turn: usize,
    draws: Draws,
    number: u64,
    fingerprint: u64,
}

impl Rounds {
    /// A machine at the time `now`, with a first round. Each CPU starts a drawn part of a quantum later.
    pub fn new(count: usize, now: i64, quantum: i64, seed: u64) -> Self {
        let mut draws = Draws::new(seed);
        let mut clocks = [now; MOST];
        for clock in &mut clocks[..count] {
            *clock += draws.below(quantum as u64) as i64;
        }
        Self {
            quantum,
            count,
            start: now,
            end: now + quantum,
            clocks,
            awake: [false; MOST],
            idle: [0; MOST],
            turn: draws.below(count as u64) as usize,
            draws,
            number: 0,
            fingerprint: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// When the round began: the time that all CPUs have reached.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// When it ends.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// How many rounds there were.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// A hash over all clocks at the end of each round: two runs that agree in it were the same run.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// A CPU's own clock.
    pub fn clock(&self, cpu: usize) -> i64 {
        self.clocks[cpu]
    }

    /// How long a CPU has been idle, in nanoseconds.
    pub fn idle(&self, cpu: usize) -> i64 {
        self.idle[cpu]
    }

    /// The same, with what it is idle now.
    pub fn idle_so_far(&self, cpu: usize) -> i64 {
        let now = match self.awake[cpu] {
            true => 0,
            false => (self.start - self.clocks[cpu]).max(0),
        };
        self.idle[cpu] + now
    }

    /// A CPU has come to this time.
    pub fn reached(&mut self, cpu: usize, clock: i64) {
        self.clocks[cpu] = clock;
    }

    /// A CPU has halted, at this time.
    pub fn halted(&mut self, cpu: usize, clock: i64) {
        self.clocks[cpu] = clock;
        self.awake[cpu] = false;
    }

    /// A CPU has something to do; if it was idle, then until `interrupted`, or the round's start.
    pub fn wake(&mut self, cpu: usize, interrupted: impl FnOnce() -> Option<i64>) {
        if self.awake[cpu] {
            return;
        }
        self.awake[cpu] = true;
        let from = interrupted().unwrap_or(self.start).max(self.start);
        if from > self.clocks[cpu] {
            self.idle[cpu] += from - self.clocks[cpu];
            self.clocks[cpu] = from;
        }
        self.mix(from ^ (cpu as i64) << 56);
    }

    /// Whether the CPU has not come to the round's end yet.
    pub fn is_behind(&self, cpu: usize) -> bool {
        self.clocks[cpu] < self.end
    }

    /// Whose turn it is.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// The turn goes to the next CPU, in QEMU's order, that `can_run`; the one that had it comes last. False where
    /// there is none.
    pub fn pass(&mut self, can_run: impl FnMut(&mut Self, usize) -> bool) -> bool {
        self.give(self.turn + 1, can_run)
    }

    /// The turn goes to the first CPU from `first` on that `can_run`. False where there is none.
    fn give(&mut self, first: usize, mut can_run: impl FnMut(&mut Self, usize) -> bool) -> bool {
        let count = self.count;
        for cpu in (first..first + count).map(|number| number % count) {
            if can_run(self, cpu) {
                self.turn = cpu;
                return true;
            }
        }
        false
    }

    /// All CPUs have come to the end, or are idle: time is now `now`.
    pub fn finish(&mut self, now: i64) {
        self.start = now;
        self.end = now;
        self.number += 1;
        self.mix(now);
        for cpu in 0..self.count {
            self.mix(self.clocks[cpu]);
        }
    }

    /// A round begins, and ends with the quantum, or when the next timer is due. Who is first is drawn.
    pub fn begin(&mut self, until_timer: Option<i64>) {
        let timer = until_timer.unwrap_or(self.quantum).max(SHORTEST);
        self.end = self.start + timer.min(self.quantum);
        self.turn = self.draws.below(self.count as u64) as usize;
    }

    /// The turn goes to whoever is first from where it was drawn. False where nobody `can_run`.
    pub fn first(&mut self, can_run: impl FnMut(&mut Self, usize) -> bool) -> bool {
        self.give(self.turn, can_run)
    }

    fn mix(&mut self, value: i64) {
        self.fingerprint = (self.fingerprint ^ value as u64).wrapping_mul(0x100_0000_01b3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: i64 = 1000;

    fn rounds(count: usize) -> Rounds {
        Rounds::new(count, 50_000, QUANTUM, 0)
    }

    fn awake(rounds: &mut Rounds) {
        (0..rounds.count).for_each(|cpu| rounds.wake(cpu, || None));
    }

    /// The order in which CPUs run in a round, each to its end.
    fn order(rounds: &mut Rounds) -> Vec<usize> {
        rounds.finish(rounds.start + QUANTUM);
        rounds.begin(None);
        let mut found = Vec::new();
        while rounds.first(|all, cpu| all.is_behind(cpu)) {
            found.push(rounds.turn());
            rounds.reached(rounds.turn(), rounds.end());
        }
        found
    }

    #[test]
    fn cpus_start_at_drawn_times_within_the_first_quantum() {
        let offsets = |seed| {
            let all = Rounds::new(8, 0, QUANTUM, seed);
            (0..8).map(|cpu| all.clock(cpu)).collect::<Vec<_>>()
        };
        assert_eq!(offsets(1), offsets(1));
        assert_ne!(offsets(1), offsets(2));
        assert!(offsets(1)
            .iter()
            .all(|offset| (0..QUANTUM).contains(offset)));
    }

    #[test]
    fn each_cpu_runs_once_a_round_and_each_is_first_in_some() {
        let mut all = rounds(4);
        awake(&mut all);
        let mut first = [0; 4];
        for _ in 0..400 {
            let mut found = order(&mut all);
            first[found[0]] += 1;
            found.sort_unstable();
            assert_eq!(found, [0, 1, 2, 3]);
        }
        assert!(first.iter().all(|&times| times > 60), "{first:?}");
    }

    #[test]
    fn who_passes_the_turn_has_it_again_after_all_others() {
        let mut all = rounds(3);
        awake(&mut all);
        all.finish(60_000);
        all.begin(None);
        assert!(all.first(|_, _| true));
        let mut found = vec![all.turn()];
        (0..3).for_each(|_| {
            assert!(all.pass(|_, _| true));
            found.push(all.turn());
        });
        assert_eq!(found[0], found[3]);
        found[..3].sort_unstable();
        assert_eq!(found[..3], [0, 1, 2]);
        assert!(!all.pass(|_, _| false));
    }

    #[test]
    fn an_idle_cpu_is_lifted_to_its_interrupt_and_not_before_it_halted() {
        let mut all = rounds(2);
        awake(&mut all);
        all.halted(0, 50_300);
        all.wake(0, || Some(50_700));
        assert_eq!((all.clock(0), all.idle(0)), (50_700, 400));
        all.halted(1, 50_900);
        all.wake(1, || Some(50_200));
        assert_eq!((all.clock(1), all.idle(1) - all.idle(1)), (50_900, 0));
        all.wake(1, || Some(99_999));
        assert_eq!(all.clock(1), 50_900, "awake already");
    }

    #[test]
    fn without_an_interrupt_an_idle_cpu_wakes_at_the_rounds_start() {
        let mut all = rounds(1);
        awake(&mut all);
        all.halted(0, 50_300);
        all.finish(70_000);
        assert_eq!((all.idle(0), all.idle_so_far(0)), (0, 19_700));
        all.wake(0, || None);
        assert_eq!((all.clock(0), all.idle(0)), (70_000, 19_700));
    }

    #[test]
    fn a_timer_cuts_a_round_short_but_time_always_passes() {
        let mut all = rounds(1);
        for (timer, length) in [
            (None, 1000),
            (Some(300), 300),
            (Some(5000), 1000),
            (Some(0), 20),
        ] {
            all.finish(80_000);
            all.begin(timer);
            assert_eq!(all.end() - all.start(), length);
        }
    }

    #[test]
    fn the_fingerprint_tells_runs_apart_by_a_single_clock() {
        let run = |last| {
            let mut all = rounds(2);
            awake(&mut all);
            all.reached(1, last);
            all.finish(51_000);
            all.fingerprint()
        };
        assert_eq!(run(51_003), run(51_003));
        assert_ne!(run(51_003), run(51_004));
    }
}
