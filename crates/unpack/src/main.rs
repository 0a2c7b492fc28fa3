//! The first program of a guest whose files come after its boot: PID 1, until it starts the agent in its place.
//!
//! It stops as soon as the kernel has booted, and the host keeps the guest as it is then. In each guest that is restored
//! from there it puts files in their places, and starts the agent. Where this kernel allows no ports it starts the agent
//! at once, which then stops instead.

#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

#[cfg(not(test))]
mod memory;
#[cfg(not(test))]
mod start;
