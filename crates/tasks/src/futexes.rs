//! Futexes, of processes and threads alike (not private), and a mutex made of one.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::Failure;

/// Wait while the word is `expected`. False: it was another, or a signal came.
#[inline(always)]
pub fn wait(word: &AtomicU32, expected: u32) -> Result<bool, Failure> {
    let none = std::ptr::null::<libc::timespec>();
    // SAFETY: the word outlives the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            expected,
            none,
        )
    };
    if answer == 0 {
        return Ok(true);
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR) => Ok(false),
        _ => Err(Failure::system("futex")),
    }
}

/// Wake at most one that waits; how many were.
#[inline(always)]
pub fn wake(word: &AtomicU32) -> Result<u32, Failure> {
    // SAFETY: the word outlives the call.
    match unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) } {
        woken @ 0..=1 => Ok(woken as u32),
        _ => Err(Failure::system("futex")),
    }
}

/// Take a mutex: 0 is free, 1 taken, 2 taken and waited for (Drepper, Futexes Are Tricky, 2011, mutex 2).
#[inline(always)]
pub fn lock(word: &AtomicU32) -> Result<(), Failure> {
    let Err(mut seen) = word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed) else {
        return Ok(());
    };
    if seen != 2 {
        seen = word.swap(2, Ordering::Acquire);
    }
    while seen != 0 {
        wait(word, 2)?;
        seen = word.swap(2, Ordering::Acquire);
    }
    Ok(())
}

/// Give the mutex back.
#[inline(always)]
pub fn unlock(word: &AtomicU32) -> Result<(), Failure> {
    if word.swap(0, Ordering::Release) == 2 {
        wake(word)?;
    }
    Ok(())
}
