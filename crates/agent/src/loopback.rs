//! The loopback interface: down after boot, and TCP workloads need it.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use probes::failure;
use wire::boot::BootFailure;

/// Bring `lo` up; the kernel gives it 127.0.0.1 and ::1 by itself then.
pub fn bring_up() -> Result<(), BootFailure> {
    let what = "loopback";
    set_up().map_err(|answer| BootFailure {
        what: what.into(),
        failure: failure::of(what, answer),
    })
}

fn set_up() -> io::Result<()> {
    // Any socket will do for the ioctl.
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: a struct of numbers and bytes, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one struct ifreq, which outlives the call.
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) })?;
    Ok(())
}
