//! Children that exit at once, made without the C library: in the child runs nothing but `exit_group`, so that it
//! touches no memory, and what is counted is the kernel's work.

use core::arch::asm;

use crate::failure::Failure;
use crate::meter::Meter;

/// What such a child exits with: a status that no accident gives.
pub const STATUS: i32 = 42;

/// How many children are made in a row and timed together. The kernel keeps most things that a child needs in slabs
/// of a few objects (three task_structs), and beginning a slab costs extra: one child more, one child less, so that
/// the median of single children would lie now on one of these costs, now on another.
pub const IN_A_ROW: usize = 3;

/// Measure how children are made and waited for; the time is that of one.
pub fn measure(
    meter: &mut Meter,
    mut one: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    meter.bundle(IN_A_ROW);
    meter.repeat_settled(|| (0..IN_A_ROW).try_for_each(|_| one()))
}

/// A system call that returns twice: in the parent here; the child exits with `STATUS`.
///
/// The child leaves before it could return or write to the stack, so that this is sound for vfork too, where it runs
/// on the parent's.
#[inline(always)]
pub fn born(call: libc::c_long, first: usize, second: usize) -> Result<libc::pid_t, Failure> {
    let answer: isize;
    // SAFETY: the child runs only the instructions below up to its end; the parent's registers that the kernel and
    // the child's path change are declared.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov edi, {status}",
            "mov eax, {exit_group}",
            "syscall",
            "ud2",
            "2:",
            status = const STATUS,
            exit_group = const libc::SYS_exit_group,
            inlateout("rax") call as isize => answer,
            inlateout("rdi") first => _,
            in("rsi") second,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    pid(answer)
}

/// Like `born` with plain fork, but the child executes the program `path` with `argv` and `environment`, and exits
/// with 127 where it cannot.
///
/// # Safety
/// `path` is a C string; `argv` and `environment` are arrays of C strings that end with a null pointer.
#[inline(always)]
pub unsafe fn executed(
    path: *const libc::c_char,
    argv: *const *const libc::c_char,
    environment: *const *const libc::c_char,
) -> Result<libc::pid_t, Failure> {
    let answer: isize;
    // SAFETY: as in `born`; the caller vouches for the pointers.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov eax, {execve}",
            "syscall",
            "mov edi, 127",
            "mov eax, {exit_group}",
            "syscall",
            "ud2",
            "2:",
            execve = const libc::SYS_execve,
            exit_group = const libc::SYS_exit_group,
            inlateout("rax") libc::SYS_fork as isize => answer,
            inlateout("rdi") path => _,
            in("rsi") argv,
            in("rdx") environment,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    pid(answer)
}

#[inline(always)]
fn pid(answer: isize) -> Result<libc::pid_t, Failure> {
    if answer > 0 {
        return Ok(answer as libc::pid_t);
    }
    Err(not_born(answer))
}

#[cold]
fn not_born(answer: isize) -> Failure {
    let error = std::io::Error::from_raw_os_error(-answer as i32);
    Failure::io("making a child", &error)
}
