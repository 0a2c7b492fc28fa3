//! What the compiler calls for copies, which a C library has otherwise. Only short ones are made here.

use core::arch::asm;

/// Copy `count` bytes.
///
/// # Safety
/// As memcpy(3).
#[no_mangle]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: both are `count` bytes long, by the caller's word.
    unsafe {
        asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _,
             options(nostack, preserves_flags))
    };
    to
}

/// Write `count` bytes of one value.
///
/// # Safety
/// As memset(3).
#[no_mangle]
unsafe extern "C" fn memset(to: *mut u8, value: i32, count: usize) -> *mut u8 {
    // SAFETY: it is `count` bytes long, by the caller's word.
    unsafe {
        asm!("rep stosb", inout("rcx") count => _, inout("rdi") to => _, in("al") value as u8,
             options(nostack, preserves_flags))
    };
    to
}

/// Whether `count` bytes differ.
///
/// # Safety
/// As memcmp(3).
#[no_mangle]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    let mut at = 0;
    while at < count {
        // SAFETY: both are `count` bytes long, by the caller's word.
        if unsafe { left.add(at).read_volatile() != right.add(at).read_volatile() } {
            return 1;
        }
        at += 1;
    }
    0
}

/// Which of `count` bytes is less.
///
/// # Safety
/// As memcmp(3).
#[no_mangle]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    let mut at = 0;
    while at < count {
        // SAFETY: both are `count` bytes long, by the caller's word.
        let (first, second) =
            unsafe { (left.add(at).read_volatile(), right.add(at).read_volatile()) };
        if first != second {
            return i32::from(first) - i32::from(second);
        }
        at += 1;
    }
    0
}
