//! A QEMU TCG plugin that counts guest instructions by kernel function, inside a region that the guest's program
//! marks, and for each operation in it. docs/architecture/plugin.md says what is counted, and how.
//!
//! A shared object without dependencies: no standard library, the C library is the one that QEMU has loaded.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod arguments;
pub mod calls;
pub mod decode;
pub mod functions;
pub mod layout;
pub mod output;
pub mod pages;
pub mod plan;
pub mod region;
pub mod repeats;
pub mod symbols;

#[cfg(not(test))]
pub mod api;
#[cfg(not(test))]
mod host;
#[cfg(not(test))]
mod plugin;
