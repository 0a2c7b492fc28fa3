//! What `unpack` does, apart from its beginning: a program without a C library cannot be a test.

#![cfg_attr(not(test), no_std)]

pub mod archive;
pub mod files;
pub mod frames;
pub mod fw_cfg;
mod places;
pub mod system_calls;
