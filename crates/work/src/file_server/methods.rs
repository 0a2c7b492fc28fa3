//! How a file's bytes get into a socket: five ways.

use std::fs::File;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::ptr;

use super::connection::wait;
use crate::failure::Failure;
use crate::files;
use crate::memory::Pages;

/// What read and splice move at a time: what a pipe holds.
const PIECE: usize = 64 << 10;

/// One way, with what it needs.
pub enum Method {
    /// sendfile, which returns when all is in the socket.
    Sendfile,
    /// sendfile on a socket that never waits: as much as fits, then poll.
    SendfileNonblocking,
    /// read into a buffer, write from it.
    ReadWrite(Pages),
    /// From the file into a pipe, from the pipe into the socket.
    Splice((OwnedFd, OwnedFd)),
    /// The file is mapped, and sent from there.
    MmapSend,
}

impl Method {
    /// All names.
    pub const NAMES: &'static [&'static str] = &[
        "sendfile",
        "sendfile-nonblocking",
        "read-write",
        "splice",
        "mmap-send",
    ];

    /// The method of that name, which is one of `NAMES`.
    pub fn new(name: &str) -> Result<Self, Failure> {
        Ok(match name {
            "sendfile-nonblocking" => Self::SendfileNonblocking,
            "read-write" => Self::ReadWrite(Pages::new(PIECE)?),
            "splice" => Self::Splice(files::pipe()?),
            "mmap-send" => Self::MmapSend,
            _ => Self::Sendfile,
        })
    }

    /// Whether its sockets wait.
    pub fn blocks(&self) -> bool {
        !matches!(self, Self::SendfileNonblocking)
    }

    /// Send `size` bytes, which is all that the file has.
    pub fn send(&mut self, socket: &TcpStream, file: &File, size: usize) -> Result<(), Failure> {
        match self {
            Self::Sendfile | Self::SendfileNonblocking => sendfile(socket, file, size),
            Self::ReadWrite(buffer) => read_write(socket, file, size, &mut buffer[..PIECE]),
            Self::Splice(pipe) => splice(socket, file, size, pipe),
            Self::MmapSend => mmap_send(socket, file, size),
        }
    }
}

fn sendfile(socket: &TcpStream, file: &File, size: usize) -> Result<(), Failure> {
    let (to, from, mut offset) = (socket.as_raw_fd(), file.as_raw_fd(), 0);
    while (offset as usize) < size {
        // SAFETY: the kernel moves `offset` on, which outlives the call.
        let sent = unsafe { libc::sendfile(to, from, &mut offset, size - offset as usize) };
        if sent < 0 && std::io::Error::last_os_error().kind() == ErrorKind::WouldBlock {
            wait(socket, libc::POLLOUT)?;
        } else if sent <= 0 {
            return Err(ended("sendfile", sent));
        }
    }
    Ok(())
}

fn read_write(
    socket: &TcpStream,
    file: &File,
    size: usize,
    buffer: &mut [u8],
) -> Result<(), Failure> {
    for offset in (0..size).step_by(PIECE) {
        let bytes = &mut buffer[..PIECE.min(size - offset)];
        file.read_exact_at(bytes, offset as u64)
            .map_err(|error| Failure::io("read", &error))?;
        send(socket, bytes)?;
    }
    Ok(())
}

fn splice(
    socket: &TcpStream,
    file: &File,
    size: usize,
    pipe: &(OwnedFd, OwnedFd),
) -> Result<(), Failure> {
    let (reading, writing) = (pipe.0.as_raw_fd(), pipe.1.as_raw_fd());
    let (mut offset, mut left) = (0, size);
    while left > 0 {
        let mut inside = spliced(file.as_raw_fd(), &mut offset, writing, left.min(PIECE))?;
        left -= inside;
        while inside > 0 {
            inside -= spliced(reading, ptr::null_mut(), socket.as_raw_fd(), inside)?;
        }
    }
    Ok(())
}

fn spliced(
    from: RawFd,
    offset: *mut libc::loff_t,
    to: RawFd,
    size: usize,
) -> Result<usize, Failure> {
    // SAFETY: `offset` is null or outlives the call; the kernel moves bytes between descriptors only.
    let moved =
        unsafe { libc::splice(from, offset, to, ptr::null_mut(), size, libc::SPLICE_F_MOVE) };
    if moved <= 0 {
        return Err(ended("splice", moved));
    }
    Ok(moved as usize)
}

fn mmap_send(socket: &TcpStream, file: &File, size: usize) -> Result<(), Failure> {
    // SAFETY: a fresh mapping of a file that nobody shortens, unmapped before this returns.
    unsafe {
        let start = libc::mmap(
            ptr::null_mut(),
            size,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if start == libc::MAP_FAILED {
            return Err(Failure::system("mmap"));
        }
        let sent = send(socket, std::slice::from_raw_parts(start.cast(), size));
        libc::munmap(start, size);
        sent
    }
}

fn send(mut socket: &TcpStream, bytes: &[u8]) -> Result<(), Failure> {
    std::io::Write::write_all(&mut socket, bytes).map_err(|error| Failure::io("send", &error))
}

#[cold]
fn ended(call: &str, moved: isize) -> Failure {
    match moved {
        ..0 => Failure::system(call),
        _ => Failure::wrong(format!("{call}: the file is shorter than it was made")),
    }
}
