//! A QEMU TCG plugin that counts guest instructions by kernel function, inside a region that the guest's program
//! marks, and for each operation in it. docs/architecture/plugin.md says what is counted, and how.
//!
//! A shared object without dependencies: no standard library, the C library is the one that QEMU has loaded.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod arguments;
pub mod block;
pub mod branches;
pub mod caches;
pub mod calls;
pub mod decode;
pub mod functions;
pub mod hierarchy;
pub mod kept;
pub mod kinds;
pub mod layout;
pub mod machine;
pub mod machine_model;
pub mod output;
pub mod page_tables;
pub mod pages;
pub mod paging_caches;
pub mod plan;
pub mod recent;
pub mod region;
pub mod repeats;
pub mod roles;
pub mod sampling;
pub mod set_associative;
pub mod strides;
pub mod symbols;
pub mod translation;
pub mod tree;
pub mod verdict;

// What touches QEMU or the C library cannot be linked into a test.
#[cfg(not(test))]
mod counters;
#[cfg(not(test))]
mod guest;
#[cfg(not(test))]
mod hooks;
#[cfg(not(test))]
mod host;
#[cfg(not(test))]
#[cfg_attr(feature = "api1", path = "inline_memory.rs")]
#[cfg_attr(not(feature = "api1"), path = "inline_scoreboard.rs")]
mod inline;
#[cfg(not(test))]
mod install;
#[cfg(not(test))]
mod plugin;
#[cfg(not(test))]
mod qemu;
#[cfg(not(test))]
mod rewound;
#[cfg(not(test))]
mod translate;
