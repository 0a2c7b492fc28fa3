//! Connections of TCP over the loopback interface.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use crate::failure::Failure;
use crate::partners::Ends;

/// Both sides of one.
pub fn connection() -> Result<(Ends, Ends), Failure> {
    connected().map_err(|error| {
        Failure::wrong(format!(
            "TCP over 127.0.0.1 (is the loopback interface up?): {error}"
        ))
    })
}

fn connected() -> std::io::Result<(Ends, Ends)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let (theirs, _) = listener.accept()?;
    Ok((ends(ours)?, ends(theirs)?))
}

fn ends(stream: TcpStream) -> std::io::Result<Ends> {
    stream.set_nodelay(true)?;
    let to = OwnedFd::from(stream.try_clone()?);
    Ok(Ends {
        from: stream.into(),
        to,
    })
}
