//! /init of ktrial's guests. It sets the system up, says `ready`, stops at the snapshot point, and after that does
//! the steps of the trial's plan, each with one result frame. `docs/architecture/guest-protocol.md` is the contract.
//!
//! What it does must be the same in every run, to the instruction: no wall clock, no randomness, no threads.

// The standard library's own start-up aborts where there is neither a console nor /dev/null, before /dev is mounted.
#![cfg_attr(not(test), no_main)]

mod fw_cfg;
mod leave;
mod loopback;
mod modules;
mod mounts;
mod plan;
mod ports;
mod ready;
mod settle;
mod standard_files;
mod steps;

use wire::boot::{BootPlan, Done, Plan, Ready};
use wire::frame::FrameKind;

use crate::ports::Ports;

/// What the kernel starts as PID 1.
#[cfg_attr(not(test), no_mangle)]
pub extern "C" fn main(argc: libc::c_int, argv: *const *const libc::c_char) -> libc::c_int {
    if settle::is_asked_for_nothing(argc, argv) {
        return 0;
    }
    if std::process::id() != 1 {
        eprintln!("agent: this is /init of ktrial's guests; it does nothing elsewhere");
        return 2;
    }
    let mut failures = mounts::mount_all();
    standard_files::ensure();
    let mut ports = Ports::open().unwrap_or_else(|failure| leave::without_a_voice(&failure));
    std::panic::set_hook(Box::new(leave::after_a_panic));
    match trial(&mut ports, &mut failures) {
        Ok(()) => leave::with_status(&mut ports, leave::DONE),
        Err(text) => leave::failed(&mut ports, text),
    }
}

fn trial(ports: &mut Ports, failures: &mut Vec<wire::boot::BootFailure>) -> Result<(), String> {
    protect_from_the_oom_killer()?;
    failures.extend(loopback::bring_up().err());
    let boot: BootPlan = plan::read_boot_plan()?;
    let modules = modules::load_at_boot(boot.modules, failures);
    settle::settle(boot.settle_ns)?;
    ports.log(format!(
        "set up and settled {} ns after the kernel's start",
        ready::uptime_ns()
    ))?;
    let ready: Ready = ready::describe(modules, std::mem::take(failures));
    ports.send(FrameKind::Ready, &ready)?;
    ports.stop_at_snapshot_point()?;
    let plan: Plan = plan::read_plan(ports)?;
    let steps = plan.steps.len() as u32;
    let mut background = steps::Background::default();
    for (number, step) in (0..).zip(plan.steps) {
        let result = steps::perform_beside(number, step, &mut background);
        ports.send(FrameKind::Result, &result)?;
    }
    ports.send(FrameKind::Done, &Done { steps })
}

/// When memory runs out, the kernel must kill the workload. The agent's children undo this for themselves.
fn protect_from_the_oom_killer() -> Result<(), String> {
    let path = "/proc/self/oom_score_adj";
    std::fs::write(path, "-1000").map_err(|error| format!("cannot write {path}: {error}"))
}
