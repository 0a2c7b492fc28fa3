//! Frames in a stream of any bytes, what their payloads say, and plans.
//!
//! An input begins with a byte that says what follows: 0, the stream as it comes; 1, a plan; 2, a plan for the boot;
//! else pieces that are framed with the right checksum, each behind its kind and its length (two bytes).

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::de::DeserializeOwned;
use serde::Serialize;
use wire::boot::{BootPlan, Done, Failed, Log, Plan, Ready};
use wire::frame::{encode, Decoder, Frame, FrameError, FrameKind};
use wire::steps::StepResult;

fuzz_target!(|data: &[u8]| {
    let Some((mode, rest)) = data.split_first() else {
        return;
    };
    match mode {
        0 => read_stream(rest),
        1 => read_again::<Plan>(rest),
        2 => read_again::<BootPlan>(rest),
        _ => read_stream(&framed(rest)),
    }
});

/// Whole and byte by byte, a stream has the same frames and the same damage; frames are encoded as they came.
fn read_stream(stream: &[u8]) {
    let (frames, damage) = decoded(stream, stream.len().max(1));
    assert_eq!(decoded(stream, 1), (frames.clone(), damage));
    let encoded: Vec<u8> = frames.iter().flat_map(encode).collect();
    assert!(stream.starts_with(&encoded));
    assert_eq!(damage.map(|error| error.position).unwrap_or(stream.len()), encoded.len());
    for frame in frames {
        match frame.kind {
            FrameKind::Ready => read_again::<Ready>(&frame.payload),
            FrameKind::Result => read_again::<StepResult>(&frame.payload),
            FrameKind::Done => read_again::<Done>(&frame.payload),
            FrameKind::Failed => read_again::<Failed>(&frame.payload),
            FrameKind::Log => read_again::<Log>(&frame.payload),
        }
    }
}

fn decoded(stream: &[u8], size: usize) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in stream.chunks(size) {
        match decoder.feed(piece) {
            Ok(more) => frames.extend(more),
            Err(error) => return (frames, Some(error)),
        }
    }
    (frames, decoder.finish().err())
}

/// What was read is written, and read again: the same.
fn read_again<T: DeserializeOwned + Serialize>(json: &[u8]) {
    let Ok(first) = serde_json::from_slice::<T>(json) else {
        return;
    };
    let written = serde_json::to_string(&first).expect("what was read can be written");
    let second: T = serde_json::from_str(&written).expect("what was written can be read");
    let again = serde_json::to_string(&second).expect("what was read can be written");
    assert_eq!(written, again);
}

fn framed(mut data: &[u8]) -> Vec<u8> {
    let kinds = [
        FrameKind::Ready,
        FrameKind::Result,
        FrameKind::Done,
        FrameKind::Failed,
        FrameKind::Log,
    ];
    let mut stream = Vec::new();
    while let [kind, low, high, rest @ ..] = data {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (payload, after) = rest.split_at(length);
        let kind = kinds[usize::from(*kind) % kinds.len()];
        let payload = payload.to_vec();
        stream.extend(encode(&Frame { kind, payload }));
        data = after;
    }
    stream
}
