//! The golden vectors that both languages read; `tests/unit/target` is the other side.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::boot::{BootPlan, Done, Failed, Log, Plan, Ready};
use wire::frame::{encode, Damage, Decoder, Frame, FrameError};
use wire::steps::StepResult;

#[derive(Deserialize)]
struct FrameVector {
    name: String,
    hex: String,
    frames: Vec<FrameContent>,
    damage: Option<String>,
    position: Option<usize>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct FrameContent {
    kind: u8,
    payload: String,
}

#[derive(Deserialize)]
struct PlanVectors {
    plans: Vec<Completed>,
    boot_plans: Vec<Completed>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
struct Completed {
    name: String,
    given: Value,
    whole: Value,
}

#[derive(Deserialize)]
struct Refused {
    name: String,
    given: Value,
}

#[derive(Deserialize)]
struct ResultVector {
    name: String,
    short: Value,
    whole: Value,
}

#[derive(Deserialize)]
struct PayloadVector {
    kind: u8,
    payload: Value,
}

fn vectors<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn content(frame: &Frame) -> FrameContent {
    let payload = String::from_utf8(frame.payload.clone()).unwrap();
    FrameContent {
        kind: frame.kind as u8,
        payload,
    }
}

fn error_of(vector: &FrameVector) -> Option<FrameError> {
    let damage = match vector.damage.as_deref()? {
        "magic" => Damage::Magic,
        "kind" => Damage::Kind,
        "length" => Damage::Length,
        "crc" => Damage::Crc,
        "truncated" => Damage::Truncated,
        other => panic!("no such damage: {other}"),
    };
    let position = vector.position.unwrap();
    Some(FrameError { position, damage })
}

/// All frames of `stream` fed in pieces of `size`, and the damage that was told.
fn decode(stream: &[u8], size: usize) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in stream.chunks(size) {
        match decoder.feed(piece) {
            Ok(some) => frames.extend(some),
            Err(error) => return (frames, Some(error)),
        }
    }
    (frames, decoder.finish().err())
}

#[test]
fn frames_and_their_damage_are_found_however_the_stream_is_cut() {
    for vector in vectors::<Vec<FrameVector>>(include_str!("../vectors/frames.json")) {
        let stream = bytes(&vector.hex);
        for size in [1, 2, 7, 4096] {
            let (frames, error) = decode(&stream, size);
            let contents: Vec<_> = frames.iter().map(content).collect();
            assert_eq!(contents, vector.frames, "{} by {size}", vector.name);
            assert_eq!(error, error_of(&vector), "{} by {size}", vector.name);
        }
    }
}

#[test]
fn good_frames_are_encoded_to_the_same_bytes() {
    for vector in vectors::<Vec<FrameVector>>(include_str!("../vectors/frames.json")) {
        let stream = bytes(&vector.hex);
        if vector.damage.is_none() {
            let (frames, _) = decode(&stream, 4096);
            let encoded: Vec<u8> = frames.iter().flat_map(encode).collect();
            assert_eq!(encoded, stream, "{}", vector.name);
        }
    }
}

fn completes<T: DeserializeOwned + Serialize>(vectors: Vec<Completed>) {
    assert!(!vectors.is_empty());
    for vector in vectors {
        let parsed: T = serde_json::from_value(vector.given).unwrap();
        assert_eq!(
            serde_json::to_value(parsed).unwrap(),
            vector.whole,
            "{}",
            vector.name
        );
    }
}

#[test]
fn plans_are_completed_with_the_same_defaults() {
    let vectors: PlanVectors = vectors(include_str!("../vectors/plans.json"));
    completes::<Plan>(vectors.plans);
    completes::<BootPlan>(vectors.boot_plans);
}

#[test]
fn wrong_plans_are_refused() {
    let vectors: PlanVectors = vectors(include_str!("../vectors/plans.json"));
    for vector in vectors.refused {
        assert!(
            serde_json::from_value::<Plan>(vector.given).is_err(),
            "{}",
            vector.name
        );
    }
}

#[test]
fn results_leave_out_what_is_at_its_default() {
    for vector in vectors::<Vec<ResultVector>>(include_str!("../vectors/results.json")) {
        let short: StepResult = serde_json::from_value(vector.short.clone()).unwrap();
        let whole: StepResult = serde_json::from_value(vector.whole).unwrap();
        assert_eq!(short, whole, "{}", vector.name);
        assert_eq!(
            serde_json::to_value(short).unwrap(),
            vector.short,
            "{}",
            vector.name
        );
    }
}

fn same_again<T: DeserializeOwned + Serialize>(payload: Value) -> bool {
    let parsed: T = serde_json::from_value(payload.clone()).unwrap();
    serde_json::to_value(parsed).unwrap() == payload
}

#[test]
fn payloads_are_what_their_kind_says() {
    for vector in vectors::<Vec<PayloadVector>>(include_str!("../vectors/payloads.json")) {
        let same = match vector.kind {
            1 => same_again::<Ready>(vector.payload),
            3 => same_again::<Done>(vector.payload),
            4 => same_again::<Failed>(vector.payload),
            5 => same_again::<Log>(vector.payload),
            other => panic!("no payload vector of kind {other} is expected"),
        };
        assert!(same, "kind {}", vector.kind);
    }
}
