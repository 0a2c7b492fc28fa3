//! The kernel's generic netlink: messages of attributes (include/uapi/linux/netlink.h, genetlink.h).

use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::failure::{succeeded, Failure};
use crate::files::{owned, whole};

/// `struct nlmsghdr`, then `struct genlmsghdr`.
const HEADERS: usize = 16 + 4;
const ATTRIBUTE: usize = 4;
const CONTROLLER: u16 = libc::GENL_ID_CTRL as u16;
const GET_FAMILY: u8 = libc::CTRL_CMD_GETFAMILY as u8;
const FAMILY_ID: u16 = libc::CTRL_ATTR_FAMILY_ID as u16;
const FAMILY_NAME: u16 = libc::CTRL_ATTR_FAMILY_NAME as u16;
const LONGEST: usize = 64 << 10;
/// Bytes of messages that may wait: the kernel drops those beyond, and says so.
const QUEUE: i32 = 64 << 20;

/// A socket, and the number of the family that it talks to.
pub struct Netlink {
    socket: OwnedFd,
    family: u16,
}

impl Netlink {
    /// Talk to the family called `name`. Fails where the kernel has none.
    pub fn new(name: &str) -> Result<Self, Failure> {
        // SAFETY: no pointers.
        let socket = unsafe {
            libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                libc::NETLINK_GENERIC,
            )
        };
        let mut netlink = Self {
            socket: owned(socket, "socket (netlink)")?,
            family: CONTROLLER,
        };
        netlink.queue(QUEUE)?;
        let answer = netlink.ask(GET_FAMILY, FAMILY_NAME, format!("{name}\0").as_bytes());
        let answer = answer
            .map_err(|failure| Failure::wrong(format!("this kernel has no {name} ({failure})")))?;
        let id = attributes(&answer).find(|(kind, _)| *kind == FAMILY_ID);
        let id = id.and_then(|(_, value)| value.first_chunk::<2>().copied());
        netlink.family =
            u16::from_ne_bytes(id.ok_or_else(|| Failure::wrong(format!("{name}: no number")))?);
        Ok(netlink)
    }

    fn queue(&self, bytes: i32) -> Result<(), Failure> {
        let length = size_of::<i32>() as libc::socklen_t;
        // SAFETY: an integer that outlives the call.
        let answer = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVBUFFORCE,
                (&raw const bytes).cast(),
                length,
            )
        };
        succeeded(answer, "setsockopt (SO_RCVBUFFORCE)").map(|_| ())
    }

    /// Send a command with one attribute; the answer's attributes, or none where it is an acknowledgement.
    pub fn ask(&self, command: u8, kind: u16, value: &[u8]) -> Result<Vec<u8>, Failure> {
        let message = message(self.family, command, kind, value);
        // SAFETY: at most the message's length is read.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                0,
            )
        };
        whole(sent, message.len(), "send (netlink)")?;
        let mut answer = Vec::new();
        loop {
            let got = self
                .received(0)?
                .ok_or_else(|| Failure::wrong("netlink: no answer"))?;
            match read(&got)? {
                Some(attributes) => answer = attributes.to_vec(),
                None => return Ok(answer),
            }
        }
    }

    /// What waits, message by message; None: nothing.
    pub fn next(&self) -> Result<Option<Vec<u8>>, Failure> {
        let got = self.received(libc::MSG_DONTWAIT)?;
        got.map(|got| read(&got).map(|attributes| attributes.unwrap_or(&[]).to_vec()))
            .transpose()
    }

    fn received(&self, flags: i32) -> Result<Option<Vec<u8>>, Failure> {
        let mut buffer = vec![0_u8; LONGEST];
        // SAFETY: at most the buffer's length is written.
        let got = unsafe {
            libc::recv(
                self.socket.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                flags,
            )
        };
        if got < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN) {
            return Ok(None);
        }
        buffer.truncate(succeeded(got, "recv (netlink)")? as usize);
        Ok(Some(buffer))
    }
}

/// With a wish for an acknowledgement.
fn message(family: u16, command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (HEADERS + ATTRIBUTE + value.len()).next_multiple_of(4);
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length, 0);
    bytes
}

/// The attributes of an answer; None: an acknowledgement. Fails where it is an error's number.
fn read(message: &[u8]) -> Result<Option<&[u8]>, Failure> {
    let cut = || Failure::wrong("netlink: a message that is cut off");
    let kind = message
        .get(4..6)
        .and_then(|kind| kind.first_chunk::<2>())
        .ok_or_else(cut)?;
    if i32::from(u16::from_ne_bytes(*kind)) == libc::NLMSG_ERROR {
        let code = message
            .get(16..20)
            .and_then(|code| code.first_chunk::<4>())
            .ok_or_else(cut)?;
        return match i32::from_ne_bytes(*code) {
            0 => Ok(None),
            code => Err(Failure::wrong(
                std::io::Error::from_raw_os_error(-code).to_string(),
            )),
        };
    }
    message.get(HEADERS..).map(Some).ok_or_else(cut)
}

/// Kind and value of each attribute, in order; what is cut off ends them.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut left = bytes;
    std::iter::from_fn(move || {
        let header = left.first_chunk::<ATTRIBUTE>()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = left.get(ATTRIBUTE..length)?;
        left = left.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        // Two bits of the kind are flags (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
        Some((u16::from_ne_bytes([header[2], header[3]]) & 0x3fff, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_are_written() {
        let one = message(1, 2, 3, b"four5");
        let rest = [&one[HEADERS..], &[4, 0, 7, 128], &[9, 0, 0, 0]].concat();
        let found: Vec<_> = attributes(&rest).collect();
        assert_eq!(found, [(3, &b"four5"[..]), (7, &b""[..])]);
    }

    #[test]
    fn errors_of_the_kernel_are_errors() {
        let told = |code: i32| [&[0; 4][..], &[2, 0], &[0; 10], &code.to_ne_bytes()].concat();
        assert!(read(&told(0)).unwrap().is_none());
        assert!(read(&told(-2))
            .unwrap_err()
            .to_string()
            .contains("No such file"));
        assert!(read(&[0; 3]).is_err());
    }
}
