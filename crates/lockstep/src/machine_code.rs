//! Calls in x86-64 code, as bytes: plain functions.

use core::mem::size_of;

/// `call` with a distance.
const CALL: u8 = 0xe8;
/// `call` through a word at a distance.
const CALL_THROUGH: [u8; 2] = [0xff, 0x15];
/// Bytes of `call` with its distance; and of the one through a word.
pub const LENGTHS: [usize; 2] = [5, 6];

/// Where in `code`, which lies at `address`, the distance of its only call of `target` stands. None where there is no
/// such call, or several.
pub fn only_call(code: &[u8], address: usize, target: usize) -> Option<usize> {
    let mut calls = (0..code.len().saturating_sub(4)).filter(|&at| {
        code[at] == CALL && called(address + at + LENGTHS[0], &code[at + 1..]) == Some(target)
    });
    let at = calls.next()?;
    calls.next().is_none().then_some(at + 1)
}

/// What a call goes to that ends at `end`, and whose distance `bytes` begin with.
pub fn called(end: usize, bytes: &[u8]) -> Option<usize> {
    let distance = i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    Some(end.wrapping_add_signed(distance as isize))
}

/// Where the word is through which a call goes, whose bytes these are, and that ends at `end`.
pub fn through(end: usize, bytes: &[u8]) -> Option<usize> {
    bytes
        .strip_prefix(&CALL_THROUGH)
        .and_then(|rest| called(end, rest))
}

/// What a call goes to whose bytes these are, and that ends at `end`.
pub fn direct(end: usize, bytes: &[u8]) -> Option<usize> {
    bytes
        .strip_prefix(&[CALL])
        .and_then(|rest| called(end, rest))
}

/// The distance from the end of a call, whose distance stands at `at`, to `target`; None where that is too far.
pub fn distance(at: usize, target: usize) -> Option<[u8; 4]> {
    let far = target.wrapping_sub(at + size_of::<i32>()) as isize;
    i32::try_from(far).ok().map(i32::to_le_bytes)
}

/// Bytes of a piece of code that goes on to a function anywhere.
pub const STUB: usize = 32;

/// Goes on to `function` as if the caller had called it, with the stack's pointer as third argument and `number` as fourth.
pub fn stub(function: usize, number: u32) -> [u8; STUB] {
    let mut code = [0xcc; STUB];
    // mov rdx, rsp; mov ecx, NUMBER; jmp [rip + 0]
    code[..3].copy_from_slice(&[0x48, 0x89, 0xe2]);
    code[3] = 0xb9;
    code[4..8].copy_from_slice(&number.to_le_bytes());
    code[8..14].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
    code[14..22].copy_from_slice(&(function as u64).to_le_bytes());
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: usize = 0x6a_9c30;

    #[test]
    fn a_call_is_found_by_what_it_calls() {
        // As in Debian 12's helper_cmpxchg16b_unlocked: mov esi, [rdi + 0xa8]; call 0x693e80.
        let code = [
            0x8b, 0xb7, 0xa8, 0, 0, 0, 0xe8, 0x45, 0xa2, 0xfe, 0xff, 0x4c, 0x89, 0xe2,
        ];
        assert_eq!(only_call(&code, AT, 0x69_3e80), Some(7));
        assert_eq!(only_call(&code, AT, 0x69_3e81), None);
        assert_eq!(only_call(&code[..10], AT, 0x69_3e80), None);
    }

    #[test]
    fn two_calls_of_it_are_none() {
        let mut code = [0u8; 10];
        for (at, place) in [(0, 1), (5, 6)] {
            code[at] = CALL;
            code[place..place + 4].copy_from_slice(&distance(AT + place, 0x69_3e80).unwrap());
        }
        assert_eq!(only_call(&code, AT, 0x69_3e80), None);
        assert_eq!(only_call(&code[..5], AT, 0x69_3e80), Some(1));
    }

    #[test]
    fn a_call_that_has_returned_tells_its_target() {
        assert_eq!(
            direct(0x1005, &[0xe8, 0xfb, 0xff, 0xff, 0xff]),
            Some(0x1000)
        );
        assert_eq!(direct(0x1005, &[0xe9, 0xfb, 0xff, 0xff, 0xff]), None);
        assert_eq!(through(0x1006, &[0xff, 0x15, 0x10, 0, 0, 0]), Some(0x1016));
        assert_eq!(through(0x1006, &[0xff, 0x25, 0x10, 0, 0, 0]), None);
    }

    #[test]
    fn a_stub_passes_the_stack_and_its_number_on() {
        let code = stub(0x7fff_1234_5678, 1);
        let expected = [
            0x48, 0x89, 0xe2, // mov rdx, rsp
            0xb9, 1, 0, 0, 0, // mov ecx, 1
            0xff, 0x25, 0, 0, 0, 0, // jmp [rip]
            0x78, 0x56, 0x34, 0x12, 0xff, 0x7f, 0, 0, 0xcc,
        ];
        assert_eq!(code[..23], expected);
    }

    #[test]
    fn what_is_too_far_has_no_distance() {
        assert_eq!(distance(0x1001, 0x1005), Some([0; 4]));
        assert_eq!(distance(0x1001, 0x1001), Some((-4i32).to_le_bytes()));
        assert_eq!(distance(0x5555_0000_0000, 0x7fff_0000_0000), None);
    }
}
