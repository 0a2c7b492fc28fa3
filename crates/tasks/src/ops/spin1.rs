//! A spin lock in user space that all tasks take.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::shared::{Alone, Shared};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "spin1",
    summary: "a spin lock in user space that all tasks take",
    does: "Takes a lock by compare-and-exchange, with a pause after each attempt that fails, adds one to a \
           number that only its holder may touch, works for a hundred instructions, gives it back, and \
           works as long outside. In the end the number must be as many as there were operations.",
    system_calls: &[],
    metric: "lock, unlock",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "a test-and-set lock, the worst of its kind",
    operations: 2000,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let words = Shared::<Alone<AtomicU64>>::new(2)?;
    let (lock, number) = (&words[0].0, &words[1].0);
    let done = crew.measure(|_| {
        Ok(|| {
            while lock.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
                spin_loop();
            }
            // Not by one instruction: without the lock numbers would be lost.
            number.store(number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            work();
            lock.store(0, Ordering::Release);
            work();
            Ok(())
        })
    })?;
    must(number.load(Ordering::SeqCst) == done, "two tasks held the lock at once")
}

#[inline(never)]
fn work() {
    for number in 0..25 {
        black_box(number);
    }
}
