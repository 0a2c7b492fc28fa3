//! What the host tells the guest before the snapshot, the plan after it, and what the guest says of itself.

use serde::{Deserialize, Serialize};

use crate::steps::{Failure, LoadModule, Step};

/// `/ktrial/boot.json`: what is done once, before the snapshot. Python: `ktrial.target.guest_plan.BootPlan`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootPlan {
    /// [`crate::PROTOCOL`].
    pub protocol: u32,
    /// Guest nanoseconds waited for the work that the kernel puts off at boot.
    pub settle_ns: u64,
    /// Modules in the order in which they are loaded, dependencies first.
    #[serde(default)]
    pub modules: Vec<BootModule>,
}

/// A module that is loaded before the snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootModule {
    /// A file in the guest, not compressed.
    pub path: String,
    /// As on insmod's command line.
    #[serde(default)]
    pub parameters: String,
}

impl From<BootModule> for LoadModule {
    fn from(module: BootModule) -> Self {
        Self {
            path: module.path,
            parameters: module.parameters,
        }
    }
}

/// `opt/ktrial/plan`: what this trial does. Python: `ktrial.target.guest_plan.GuestPlan`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`crate::PROTOCOL`].
    pub protocol: u32,
    /// Done in order; one that fails does not stop those after it.
    pub steps: Vec<Step>,
}

/// The system is up. Python: `ktrial.target.frames.Ready`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// [`crate::PROTOCOL`].
    pub protocol: u32,
    /// `uname -r`.
    pub release: String,
    /// The agent's version.
    pub agent: String,
    /// CPUs online.
    pub cpus: u32,
    /// `MemTotal`, in KiB.
    pub memory_kib: u64,
    /// Names of the modules that are loaded, in the order in which they were loaded.
    pub modules: Vec<String>,
    /// The kernel's command line.
    pub command_line: String,
    /// What could not be set up; the system runs without it.
    pub failures: Vec<BootFailure>,
    /// The time-stamp counter just before the snapshot point: in exact mode QEMU's virtual clock, in nanoseconds.
    #[serde(default)]
    pub tsc: u64,
}

/// Something that could not be set up at boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootFailure {
    /// What was tried: `mount /sys/kernel/debug`, `module /lib/…/ext4.ko`, `loopback`.
    pub what: String,
    /// The kernel's answer.
    pub failure: Failure,
}

/// Every step was reached. Python: `ktrial.target.frames.Done`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// How many steps there were.
    pub steps: u32,
}

/// The agent itself could not go on. Python: `ktrial.target.frames.Failed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// Why, in one sentence.
    pub text: String,
}

/// For a person. Python: `ktrial.target.frames.Log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// One or more lines.
    pub text: String,
}
