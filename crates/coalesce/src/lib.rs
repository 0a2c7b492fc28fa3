//! Preloaded into QEMU: what the guest writes byte by byte is written in pieces.
//!
//! The guest's frames and its console come out of I/O ports, one byte at a time, and QEMU calls `writev` for each. For
//! the symbols of a kernel (twelve million bytes) that took 16 of 20 seconds of CPU. Here such bytes are kept until
//! they are many, or until somebody may look:
//!
//! - before QEMU says anything on its monitor (`sendmsg`): who has read of an event finds what the guest wrote before;
//! - each time the main loop goes to sleep or wakes (`ppoll`), and ten times a second while it sleeps;
//! - before any other `writev`, and when QEMU exits.
//!
//! So who kills QEMU loses what the guest wrote in the last tenth of a second, and nothing else. The guest sees no
//! difference: a port takes a byte in no time of the guest's, now as before.
#![cfg_attr(not(test), no_std)]

mod pieces;

// A test must not come between itself and the C library.
#[cfg(not(test))]
mod c_library;
#[cfg(not(test))]
mod interposed;
