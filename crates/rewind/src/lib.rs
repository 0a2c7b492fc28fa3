//! Preloaded into QEMU: takes its guest back to the snapshot, so that one process serves many trials and what it has
//! translated of the kernel stays.
//!
//! Translating a kernel's code is half of what a short trial costs. Where the guest's last instruction would end QEMU
//! (isa-debug-exit), it stops instead. Asked for by a page that it shares with ktrial, the main loop then puts
//! everything to where it was at the start:
//!
//! - devices and CPU: QEMU's own reset, then the snapshot's state, as a fresh process does both;
//! - memory: the pages that the guest has written to are dropped, and are the snapshot's again (the file is mapped
//!   privately). What was translated of them goes, too;
//! - the trial's plan (fw_cfg), and QEMU's random numbers for the guest (`-seed`);
//! - the plugin (crates/insn) begins anew, and says whether what it keeps of translations may serve another trial.
//!
//! What is left is translations of code that is byte for byte the snapshot's, the kernel's and programs'. A fresh
//! process would make the same.
//!
//! It knows QEMU 7.2, and is loaded into no other.
#![cfg_attr(not(test), no_std)]

pub mod pages;

// A test must not come between itself and the C library.
#[cfg(not(test))]
mod c_library;
#[cfg(not(test))]
mod control;
#[cfg(not(test))]
mod interposed;
#[cfg(not(test))]
mod listener;
#[cfg(not(test))]
mod qemu;
#[cfg(not(test))]
mod start;
