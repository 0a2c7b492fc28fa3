//! No code: `Cargo.toml` names the exact versions of the crates that ours need only by way of others.
//!
//! Cargo takes one version of a crate for the whole workspace. So what is named here holds for the guest's programs too,
//! and these have the same bytes whenever they are built.
