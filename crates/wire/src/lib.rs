//! What the guest's programs and the host agree on. `docs/architecture/guest-protocol.md` says it in words; the
//! Python side is `ktrial.target.frames`, `ktrial.target.guest_plan` and `ktrial.target.steps`. Both sides read the golden
//! vectors in `crates/wire/vectors`.

#[cfg(feature = "frames")]
pub mod boot;
#[cfg(feature = "frames")]
pub mod frame;
#[cfg(target_arch = "x86_64")]
pub mod marks;
#[cfg(feature = "frames")]
pub mod steps;

/// The version of all that is agreed on here. A guest refuses a plan of another version.
pub const PROTOCOL: u32 = 1;
