//! The ways out. PID 1 must never return: the kernel would panic.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::time::Duration;

use nix::sys::reboot::{reboot, RebootMode};

use crate::ports::Ports;

/// Every step was reached: QEMU ends with status 1.
pub const DONE: u8 = 0;
/// The agent could not go on: QEMU ends with status 3.
pub const FAILED: u8 = 1;

/// Leave through isa-debug-exit, or by turning the power off where there is none.
pub fn with_status(ports: &mut Ports, code: u8) -> ! {
    let refused = ports.exit_machine(code).err();
    // QEMU since 9.1 ends a little after the instruction: do not let the kernel log a shutdown meanwhile.
    std::thread::sleep(Duration::from_secs(1));
    if let Some(error) = refused {
        tell_the_kernel_log(&format!("cannot use isa-debug-exit: {error}"));
    }
    power_off()
}

/// Say why in a frame, and leave.
pub fn failed(ports: &mut Ports, text: String) -> ! {
    tell_the_kernel_log(&text);
    if let Err(unsaid) = ports.fail(text) {
        tell_the_kernel_log(&unsaid);
    }
    with_status(ports, FAILED)
}

/// Leave where no port can be used: the console is all that is left.
pub fn without_a_voice(text: &str) -> ! {
    tell_the_kernel_log(text);
    power_off()
}

/// The hook for panics: they end the trial like any other failure of the agent.
pub fn after_a_panic(panic: &PanicHookInfo<'_>) {
    match Ports::open() {
        Ok(mut ports) => failed(&mut ports, format!("the agent panicked: {panic}")),
        Err(text) => without_a_voice(&text),
    }
}

/// Best effort: where the kernel has no log either, there is nobody left to tell.
fn tell_the_kernel_log(text: &str) {
    if let Ok(mut log) = OpenOptions::new().write(true).open("/dev/kmsg") {
        // One write is one record.
        let _ = log.write_all(format!("<3>ktrial-agent: {text}\n").as_bytes());
    }
}

fn power_off() -> ! {
    let refused = reboot(RebootMode::RB_POWER_OFF).unwrap_err();
    tell_the_kernel_log(&format!("cannot power off: {refused}"));
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
