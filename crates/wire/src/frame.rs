//! Frames: what the guest writes to the debug port. See `docs/architecture/guest-protocol.md`.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

/// The first bytes of every frame.
pub const MAGIC: [u8; 4] = *b"KTF1";
/// The longest payload: a collected file of 64 MiB in base64, with room to spare.
pub const MAX_PAYLOAD: usize = 128 << 20;

const KIND_AND_LENGTH: usize = 5;
const HEADER: usize = MAGIC.len() + KIND_AND_LENGTH;
const CRC: usize = 4;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// The system is up: [`crate::boot::Ready`].
    Ready = 1,
    /// A step is done: [`crate::steps::StepResult`].
    Result = 2,
    /// Every step was reached: [`crate::boot::Done`].
    Done = 3,
    /// The agent could not go on: [`crate::boot::Failed`].
    Failed = 4,
    /// For a person: [`crate::boot::Log`].
    Log = 5,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Ready,
            Self::Result,
            Self::Done,
            Self::Failed,
            Self::Log,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// One frame; the payload is JSON in UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it says.
    pub kind: FrameKind,
    /// The JSON.
    pub payload: Vec<u8>,
}

/// How a frame is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It does not begin with the magic.
    Magic,
    /// Its kind is none of [`FrameKind`].
    Kind,
    /// It says that its payload is longer than [`MAX_PAYLOAD`].
    Length,
    /// Its checksum is not that of its bytes.
    Crc,
    /// The stream ends inside it.
    Truncated,
}

/// A damaged frame, and where in the stream it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError {
    /// Offset of the damaged frame's first byte in the stream.
    pub position: usize,
    /// What is wrong with it.
    pub damage: Damage,
}

impl fmt::Display for FrameError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.damage {
            Damage::Magic => "does not begin with KTF1",
            Damage::Kind => "has an unknown kind",
            Damage::Length => "says that it is longer than a frame may be",
            Damage::Crc => "has a wrong checksum",
            Damage::Truncated => "ends early",
        };
        write!(out, "the frame at byte {} {what}", self.position)
    }
}

impl std::error::Error for FrameError {}

/// The frame's bytes. The payload must not be longer than [`MAX_PAYLOAD`].
pub fn encode(frame: &Frame) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.push(frame.kind as u8);
    bytes.extend((frame.payload.len() as u32).to_le_bytes());
    bytes.extend(&frame.payload);
    let crc = crc32fast::hash(&bytes[MAGIC.len()..]);
    bytes.extend(crc.to_le_bytes());
    bytes
}

/// Write `payload` as a frame without holding its JSON in memory (it is made twice: once for its length).
///
/// Fails with `InvalidInput` where the payload is longer than [`MAX_PAYLOAD`]; nothing is written then.
pub fn write_frame(
    out: &mut impl Write,
    kind: FrameKind,
    payload: &impl Serialize,
) -> io::Result<()> {
    let length = length_within(MAX_PAYLOAD, payload)?;
    out.write_all(&MAGIC)?;
    let mut body = Checksummed {
        out,
        crc: crc32fast::Hasher::new(),
    };
    body.write_all(&[kind as u8])?;
    body.write_all(&(length as u32).to_le_bytes())?;
    serde_json::to_writer(&mut body, payload)?;
    let Checksummed { out, crc } = body;
    out.write_all(&crc.finalize().to_le_bytes())?;
    out.flush()
}

fn length_within(limit: usize, payload: &impl Serialize) -> io::Result<usize> {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, payload)?;
    if length.0 > limit {
        let problem = format!(
            "a payload of {} bytes; at most {limit} are allowed",
            length.0
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    Ok(length.0)
}

struct Length(usize);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Checksummed<'a, W: Write> {
    out: &'a mut W,
    crc: crc32fast::Hasher,
}

impl<W: Write> Write for Checksummed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Takes frames out of a stream that arrives in pieces of any size.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
    position: usize,
    error: Option<FrameError>,
}

impl Decoder {
    /// The frames that `data` completes. Frames before a damaged one are returned first; the damage is the answer
    /// to the next call, and to every call from then on.
    pub fn feed(&mut self, data: &[u8]) -> Result<Vec<Frame>, FrameError> {
        self.pending.extend(data);
        let mut frames = Vec::new();
        while self.error.is_none() {
            match self.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => self.error = Some(error),
            }
        }
        match self.error {
            Some(error) if frames.is_empty() => Err(error),
            _ => Ok(frames),
        }
    }

    /// Say that the stream has ended: damage that was not told yet, or a frame that is not complete, is an error.
    pub fn finish(&self) -> Result<(), FrameError> {
        match self.error {
            Some(error) => Err(error),
            None if self.pending.is_empty() => Ok(()),
            None => Err(self.damaged(Damage::Truncated)),
        }
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let magic = self.pending.len().min(MAGIC.len());
        if self.pending[..magic] != MAGIC[..magic] {
            return Err(self.damaged(Damage::Magic));
        }
        let Some(&byte) = self.pending.get(MAGIC.len()) else {
            return Ok(None);
        };
        let kind = FrameKind::from_byte(byte).ok_or(self.damaged(Damage::Kind))?;
        let Some(length) = self.pending.get(HEADER - 4..HEADER) else {
            return Ok(None);
        };
        let length = le32(length) as usize;
        if length > MAX_PAYLOAD {
            return Err(self.damaged(Damage::Length));
        }
        let end = HEADER + length;
        let Some(crc) = self.pending.get(end..end + CRC) else {
            return Ok(None);
        };
        if le32(crc) != crc32fast::hash(&self.pending[MAGIC.len()..end]) {
            return Err(self.damaged(Damage::Crc));
        }
        let payload = self.pending[HEADER..end].to_vec();
        self.pending.drain(..end + CRC);
        self.position += end + CRC;
        Ok(Some(Frame { kind, payload }))
    }

    fn damaged(&self, damage: Damage) -> FrameError {
        FrameError {
            position: self.position,
            damage,
        }
    }
}

fn le32(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, &byte| (value << 8) | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: &[u8]) -> Frame {
        Frame {
            kind: FrameKind::Log,
            payload: payload.to_vec(),
        }
    }

    #[test]
    fn frames_survive_being_fed_byte_by_byte() {
        let sent = [frame(b"{\"text\":\"one\"}"), frame(b""), frame(&[0; 300])];
        let mut decoder = Decoder::default();
        let mut received = Vec::new();
        for byte in sent.iter().flat_map(encode) {
            received.extend(decoder.feed(&[byte]).unwrap());
        }
        assert_eq!(received, sent);
        assert_eq!(decoder.finish(), Ok(()));
    }

    #[test]
    fn every_change_of_a_single_byte_is_noticed() {
        let whole = encode(&frame(b"{\"text\":\"a\"}"));
        for place in 0..whole.len() {
            for change in 1..=255 {
                let mut bytes = whole.clone();
                bytes[place] ^= change;
                let mut decoder = Decoder::default();
                let told = decoder
                    .feed(&bytes)
                    .map(|frames| (frames, decoder.finish()));
                assert!(
                    matches!(told, Err(_) | Ok((_, Err(_)))),
                    "byte {place} changed by {change}"
                );
            }
        }
    }

    #[test]
    fn good_frames_before_the_damage_are_not_lost() {
        let mut bytes = encode(&frame(b"{}"));
        let position = bytes.len();
        bytes.extend(b"noise");
        let mut decoder = Decoder::default();
        let error = FrameError {
            position,
            damage: Damage::Magic,
        };
        assert_eq!(decoder.feed(&bytes), Ok(vec![frame(b"{}")]));
        assert_eq!(decoder.feed(b""), Err(error));
        assert_eq!(decoder.finish(), Err(error));
    }

    #[test]
    fn a_written_frame_is_an_encoded_frame() {
        let payload = crate::boot::Log {
            text: "caf\u{e9}\n".into(),
        };
        let mut written = Vec::new();
        write_frame(&mut written, FrameKind::Log, &payload).unwrap();
        assert_eq!(
            written,
            encode(&frame("{\"text\":\"caf\u{e9}\\n\"}".as_bytes()))
        );
    }

    #[test]
    fn a_payload_that_is_too_long_is_refused() {
        let payload = crate::boot::Log { text: "aa".into() };
        assert_eq!(length_within(13, &payload).unwrap(), 13);
        let refused = length_within(12, &payload).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
