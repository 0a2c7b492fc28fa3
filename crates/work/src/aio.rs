//! Linux's own asynchronous I/O (io_setup, io_submit, io_getevents), by system call: the C library has no wrappers.

use std::os::fd::RawFd;
use std::ptr;

use crate::failure::Failure;

/// `struct iocb` of linux/aio_abi.h, little-endian.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Request {
    /// Comes back with the answer.
    pub data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Answer {
    /// What the request had in `data`.
    pub data: u64,
    request: u64,
    /// Bytes moved, or the negative of an errno.
    pub result: i64,
    second: i64,
}

/// IOCB_CMD_PREAD and IOCB_CMD_PWRITE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Read from the file into the buffer.
    Read = 0,
    /// Write from the buffer to the file.
    Write = 1,
}

impl Request {
    /// Move the buffer's bytes from or to `offset` of the file. `data` comes back with the answer.
    pub fn new(command: Command, file: RawFd, buffer: &mut [u8], offset: usize, data: u64) -> Self {
        Self {
            data,
            opcode: command as u16,
            file: file as u32,
            buffer: buffer.as_mut_ptr() as u64,
            bytes: buffer.len() as u64,
            offset: offset as i64,
            ..Self::default()
        }
    }
}

/// A context: what is submitted to it, and the answers.
pub struct Context(u64);

impl Context {
    /// For at most `depth` requests at a time.
    pub fn new(depth: usize) -> Result<Self, Failure> {
        let mut context = 0u64;
        // SAFETY: the kernel writes one number.
        let answer =
            unsafe { libc::syscall(libc::SYS_io_setup, depth, ptr::addr_of_mut!(context)) };
        match answer {
            0 => Ok(Self(context)),
            _ => Err(Failure::system("io_setup")),
        }
    }

    /// Hand requests to the kernel; returns how many it took. What they point at must stay until they are answered.
    pub fn submit(&self, requests: &mut [*mut Request]) -> Result<usize, Failure> {
        // SAFETY: pointers to requests that live until their answers are there, as the caller promises.
        let taken = unsafe {
            libc::syscall(
                libc::SYS_io_submit,
                self.0,
                requests.len(),
                requests.as_mut_ptr(),
            )
        };
        usize::try_from(taken).map_err(|_| Failure::system("io_submit"))
    }

    /// Wait for at least `least` answers; returns how many came.
    pub fn answers(&self, least: usize, into: &mut [Answer]) -> Result<usize, Failure> {
        // SAFETY: room for as many answers as are asked for; no time limit.
        let got = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.0,
                least,
                into.len(),
                into.as_mut_ptr(),
                ptr::null_mut::<libc::timespec>(),
            )
        };
        usize::try_from(got).map_err(|_| Failure::system("io_getevents"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: our own context; the kernel waits for what is under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}
