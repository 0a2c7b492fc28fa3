//! Preloaded into QEMU, keeps its main loop from running while the guest's CPU does; and mends a mistake of QEMU's
//! (`pairs`).
//!
//! With `-icount sleep=off` an idle guest's clock is moved to its next timer by the main loop
//! (`icount_start_warp_timer`), which asks whether all CPUs are idle. The CPU's thread says that it is as soon as it
//! executes HLT (`do_hlt` sets `halted`), a microsecond before it has added what it executed last to the clock
//! (`icount_process_data`). A main loop that looks in between, woken by an earlier timer, moves the clock too far, by
//! as much as the host's scheduler happened to decide: 6 of 240 restored trials on a busy host were not the same to
//! the last digit; with this object, none of 180. QEMU holds the two apart itself only when it records (`rr=record`),
//! and then it cannot restore a snapshot.
//!
//! The main loop sleeps in `ppoll`. Here it comes out of there only once the CPU's thread waits (for an interrupt, or
//! to be resumed), or after `turns::Patience`, so that a guest that never idles can still be asked for its time.
//! Which thread and which condition that is shows at start-up (`turns`).
#![cfg_attr(not(test), no_std)]

mod machine_code;
mod turns;

// A test must not come between itself and the C library.
#[cfg(not(test))]
mod c_library;
#[cfg(not(test))]
mod interposed;
#[cfg(not(test))]
mod pairs;
#[cfg(not(test))]
mod program;
