//! I/O ports: the guest's voice (isa-debugcon), its ear (fw_cfg), and the doors out of it (pvpanic, isa-debug-exit).
//!
//! A port needs no driver and no interrupt, and what an instruction asks for is done when the instruction has ended:
//! nothing here depends on host time.

use core::arch::asm;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use serde::Serialize;
use wire::boot::{Failed, Log};
use wire::frame::{write_frame, FrameKind};

const DEBUGCON: u16 = 0xe9;
const DEBUG_EXIT: u16 = 0xf4;
const PVPANIC: u16 = 0x505;
/// pvpanic's event 'the guest has panicked', at which `-action panic=pause` stops the guest.
const PANICKED: u8 = 1;
const FW_CFG_SELECTOR: u16 = 0x510;
const FW_CFG_DATA: u16 = 0x511;
const ALL_PORTS_LEVEL: libc::c_int = 3;
const ALL_PORTS: libc::c_ulong = 0x1_0000;

/// The way to the ports that this kernel allows.
#[derive(Debug)]
pub enum Ports {
    /// In and out instructions.
    Direct,
    /// /dev/port, a system call a byte: for kernels without ioperm and iopl (CONFIG_X86_IOPL_IOPERM=n).
    Device(File),
}

impl Ports {
    /// Ask for ioperm, then iopl, then /dev/port. A locked-down kernel refuses all three.
    pub fn open() -> Result<Self, String> {
        if allow_ports().is_ok() || allow_all_ports().is_ok() {
            return Ok(Self::Direct);
        }
        match OpenOptions::new().read(true).write(true).open("/dev/port") {
            Ok(file) => Ok(Self::Device(file)),
            Err(error) => Err(format!(
                "the kernel refuses ioperm, iopl and /dev/port ({error}): is it locked down?"
            )),
        }
    }

    /// Send one frame.
    pub fn send(&mut self, kind: FrameKind, payload: &impl Serialize) -> Result<(), String> {
        let mut out = BufWriter::with_capacity(1 << 16, Debugcon(self));
        write_frame(&mut out, kind, payload)
            .map_err(|error| format!("cannot send a {kind:?} frame: {error}"))
    }

    /// Say something to a person.
    pub fn log(&mut self, text: String) -> Result<(), String> {
        self.send(FrameKind::Log, &Log { text })
    }

    /// Say why the agent cannot go on.
    pub fn fail(&mut self, text: String) -> Result<(), String> {
        self.send(FrameKind::Failed, &Failed { text })
    }

    /// Stop the guest, where the host asked for that; the host saves its state here, or lets it go on.
    pub fn stop_at_snapshot_point(&mut self) -> Result<(), String> {
        self.write(PVPANIC, &[PANICKED])
            .map_err(|error| format!("cannot stop at the snapshot point: {error}"))
    }

    /// End QEMU with exit status `2 * code + 1`.
    pub fn exit_machine(&mut self, code: u8) -> io::Result<()> {
        self.write(DEBUG_EXIT, &[code])
    }

    /// Choose what fw_cfg's data port yields next. Needs a 16-bit access, which /dev/port does not have.
    pub fn select_fw_cfg(&mut self, item: u16) -> io::Result<()> {
        match self {
            Self::Direct => {
                // SAFETY: this port is allowed (open), and is fw_cfg's selector on every PC that QEMU makes; no memory
                // is touched.
                unsafe {
                    asm!("out dx, ax", in("dx") FW_CFG_SELECTOR, in("ax") item, options(nomem, nostack))
                };
                Ok(())
            }
            Self::Device(_) => Err(Errno::ENOTSUP.into()),
        }
    }

    /// The next bytes of what was selected; zeros after its end.
    pub fn read_fw_cfg(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Direct => {
                // SAFETY: `rep insb` writes rcx bytes from rdi on, which is `buffer` exactly.
                unsafe {
                    asm!("rep insb", in("dx") FW_CFG_DATA, inout("rcx") buffer.len() => _,
                         inout("rdi") buffer.as_mut_ptr() => _, options(nostack))
                };
                Ok(())
            }
            Self::Device(_) => Err(Errno::ENOTSUP.into()),
        }
    }

    fn write(&mut self, port: u16, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Direct => {
                // SAFETY: `rep outsb` reads rcx bytes from rsi on, which is `bytes` exactly.
                unsafe {
                    asm!("rep outsb", in("dx") port, inout("rcx") bytes.len() => _,
                         inout("rsi") bytes.as_ptr() => _, options(nostack, readonly))
                };
                Ok(())
            }
            Self::Device(file) => bytes
                .iter()
                .try_for_each(|byte| file.write_all_at(&[*byte], u64::from(port))),
        }
    }
}

struct Debugcon<'a>(&'a mut Ports);

impl Write for Debugcon<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(DEBUGCON, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// In a child before exec: give up what it inherited, for fork and exec keep it. A task with an I/O bitmap has it
/// looked at on each return to user mode (_TIF_IO_BITMAP, tss_update_io_bitmap): 56 instructions more in each system
/// call on 6.1, where getppid takes 323.
pub fn give_up() {
    // SAFETY: takes from this process the use of ports, and nothing else. An error means that it had none, or that
    // this kernel knows no such thing.
    unsafe {
        libc::ioperm(0, ALL_PORTS, 0);
        libc::iopl(0);
    }
}

fn allow_ports() -> nix::Result<()> {
    [
        (DEBUGCON, 1),
        (DEBUG_EXIT, 1),
        (PVPANIC, 1),
        (FW_CFG_SELECTOR, 2),
    ]
    .into_iter()
    .try_for_each(|(port, count)| {
        // SAFETY: changes which ports this process may use, and nothing else.
        Errno::result(unsafe { libc::ioperm(port.into(), count, 1) }).map(drop)
    })
}

fn allow_all_ports() -> nix::Result<()> {
    // SAFETY: as in allow_ports.
    Errno::result(unsafe { libc::iopl(ALL_PORTS_LEVEL) }).map(drop)
}
