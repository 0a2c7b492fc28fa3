//! A mutex that all tasks take.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::futexes::{lock, unlock};
use crate::shared::{Alone, Shared};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "futex3",
    summary: "a mutex that all tasks take",
    does: "Takes a mutex made of a futex, adds one to a number that only its holder may touch, works for a \
           hundred instructions, gives it back, and works as long outside. Who does not get it sleeps in \
           the kernel. In the end the number must be as many as there were operations.",
    system_calls: &["futex (wait), where it is taken", "futex (wake), where one waits"],
    metric: "lock, unlock",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale pthread_mutex tests, with a mutex of its own (Drepper, Futexes Are Tricky)",
    operations: 2000,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let words = Shared::<Alone<AtomicU32>>::new(2)?;
    let (mutex, number) = (&words[0].0, &words[1].0);
    let done = crew.measure(|_| {
        Ok(|| {
            lock(mutex)?;
            // Not by one instruction: without the lock numbers would be lost.
            number.store(number.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            work();
            unlock(mutex)?;
            work();
            Ok(())
        })
    })?;
    must(number.load(Ordering::SeqCst) == done as u32, "two tasks held the mutex at once")
}

#[inline(never)]
fn work() {
    for number in 0..25 {
        black_box(number);
    }
}
