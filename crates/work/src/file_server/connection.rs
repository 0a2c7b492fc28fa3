//! A TCP connection over loopback, and requests on it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use super::files::Name;
use crate::failure::Failure;

/// Bytes that a socket holds, each way: a file of the largest class takes many calls, as it does over a real network.
const BUFFER: libc::c_int = 64 << 10;
const REQUEST: usize = 8;

/// A client's end and the server's.
pub fn pair() -> Result<(TcpStream, TcpStream), Failure> {
    connected().map_err(|error| {
        Failure::io(
            "TCP over 127.0.0.1 (is the loopback interface up, `ip link set lo up`?)",
            &error,
        )
    })
}

fn connected() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    for (end, option) in [(&client, libc::SO_RCVBUF), (&server, libc::SO_SNDBUF)] {
        end.set_nodelay(true)?;
        // SAFETY: the option's value is an int that outlives the call.
        let answer = unsafe {
            let value: *const libc::c_int = &BUFFER;
            let size = size_of::<libc::c_int>() as libc::socklen_t;
            libc::setsockopt(
                end.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                value.cast(),
                size,
            )
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok((client, server))
}

/// Ask for a file.
pub fn ask(mut to: &TcpStream, name: Name) -> Result<(), Failure> {
    let mut request = [0; REQUEST];
    request[..4].copy_from_slice(&(name.class as u32).to_le_bytes());
    request[4..].copy_from_slice(&(name.number as u32).to_le_bytes());
    to.write_all(&request)
        .map_err(|error| Failure::io("asking", &error))
}

/// The next request; None where the client has closed the connection.
pub fn asked(mut from: &TcpStream) -> Result<Option<Name>, Failure> {
    let mut request = [0; REQUEST];
    let mut filled = 0;
    while filled < REQUEST {
        match from.read(&mut request[filled..]) {
            Ok(0) => return Ok(None),
            Ok(got) => filled += got,
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(from, libc::POLLIN)?,
            Err(error) => return Err(Failure::io("being asked", &error)),
        }
    }
    let word = |at: usize| {
        u32::from_le_bytes([
            request[at],
            request[at + 1],
            request[at + 2],
            request[at + 3],
        ]) as usize
    };
    Ok(Some(Name {
        class: word(0),
        number: word(4),
    }))
}

/// Until the socket is ready for `events`.
pub fn wait(socket: &TcpStream, events: libc::c_short) -> Result<(), Failure> {
    let mut polled = libc::pollfd {
        fd: socket.as_raw_fd(),
        events,
        revents: 0,
    };
    // SAFETY: one structure that outlives the call.
    match unsafe { libc::poll(&mut polled, 1, -1) } {
        1 => Ok(()),
        _ => Err(Failure::system("poll")),
    }
}
