//! Preloaded into QEMU, and loaded as its plugin: several CPUs of a guest run in parallel virtual time.
//!
//! QEMU's TCG runs the CPUs in turns in one thread (`-accel tcg,thread=single`), and without `-icount` its guest's clock
//! is the host's. Here every CPU has a clock of its own, on which an instruction takes a nanosecond, and the guest's
//! time passes for all of them together: in a round each CPU that is awake executes until its clock has reached the
//! round's end; then the time of all moves on, timers that are due run, and the next round begins (`rounds`). A CPU
//! that is idle is lifted to the moment of the interrupt that wakes it, and when all are idle, time jumps to the next
//! timer. So nothing depends on the host's clock or on its scheduler, and locks are contended as they would be.
//!
//! QEMU offers no plugin this. What is needed of its inside (`qemu`, `accelerator`) is looked up by name, and where
//! something has a place instead of a name, the place is found by what is there and tried before it is used. A QEMU
//! that is not one of those that were tested is refused.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod arguments;
pub mod draws;
pub mod instructions;
pub mod lines;
pub mod marks;
pub mod pages;
pub mod rounds;
pub mod symbols;
pub mod tally;

// What touches QEMU or the C library cannot be linked into a test.
#[cfg(not(test))]
mod accelerator;
#[cfg(not(test))]
mod c_library;
#[cfg(not(test))]
mod clocks;
#[cfg(not(test))]
mod code;
#[cfg(not(test))]
mod counting;
#[cfg(not(test))]
mod engine;
#[cfg(not(test))]
mod hooks;
#[cfg(not(test))]
mod install;
#[cfg(not(test))]
mod installed;
#[cfg(not(test))]
mod interposed;
#[cfg(not(test))]
mod output;
#[cfg(not(test))]
mod qemu;
