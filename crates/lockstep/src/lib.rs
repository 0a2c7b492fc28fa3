//! Preloaded into QEMU, keeps its main loop from running while the guest's CPU does.
//!
//! With `-icount sleep=off` an idle guest's clock is moved to its next timer by the main loop
//! (`icount_start_warp_timer`), which asks whether all CPUs are idle. The CPU's thread says that it is as soon as it
//! executes HLT (`do_hlt` sets `halted`), a microsecond before it has added what it executed last to the clock
//! (`icount_process_data`). A main loop that looks in between, woken by an earlier timer, moves the clock too far, by
//! as much as the host's scheduler happened to decide: 6 of 240 restored trials on a busy host were not the same to
//! the last digit; with this object, none of 180. QEMU holds the two apart itself only when it records (`rr=record`),
//! and then it cannot restore a snapshot.
//!
//! The main loop sleeps in `ppoll`. Here it comes out of there only once the CPU's thread waits (for an interrupt, or
//! to be resumed), or after `PATIENCE`, so that a guest that never idles can still be asked for its time.
//! Which thread and which condition that is shows at start-up: the main thread waits, on the big lock, for the CPU's
//! thread to be made (`qemu_init_vcpu`), and the first other thread that waits on that lock is the CPU's.
#![no_std]

use core::ffi::{c_char, c_int, c_long, c_void, CStr};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};

/// How long the main loop waits for a CPU that does not idle.
const PATIENCE: Timespec = Timespec {
    seconds: 1,
    nanoseconds: 0,
};

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn dlvsym(from: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn dlsym(from: *mut c_void, name: *const c_char) -> *mut c_void;
    fn syscall(number: c_long, ...) -> c_long;
    fn getpid() -> c_int;
    fn abort() -> !;
}

/// RTLD_NEXT: the next object that has the name, the C library's.
const NEXT: *mut c_void = usize::MAX as *mut c_void;
#[cfg(target_arch = "x86_64")]
mod system {
    pub const GETTID: super::c_long = 186;
    pub const FUTEX: super::c_long = 202;
    /// Since this version of glibc conditions have their present layout; dlsym would find the older one.
    pub const CONDITIONS: &core::ffi::CStr = c"GLIBC_2.3.2";
}
#[cfg(target_arch = "aarch64")]
mod system {
    pub const GETTID: super::c_long = 178;
    pub const FUTEX: super::c_long = 98;
    pub const CONDITIONS: &core::ffi::CStr = c"GLIBC_2.17";
}
const FUTEX_WAIT_PRIVATE: c_int = 128;
const FUTEX_WAKE_PRIVATE: c_int = 129;

type Condition = c_void;
type Mutex = c_void;
type Wait = unsafe extern "C" fn(*mut Condition, *mut Mutex) -> c_int;
type Broadcast = unsafe extern "C" fn(*mut Condition) -> c_int;
type Poll = unsafe extern "C" fn(*mut c_void, u64, *const c_void, *const c_void) -> c_int;

/// QEMU's big lock.
static BIG_LOCK: AtomicPtr<Mutex> = AtomicPtr::new(null_mut());
/// What the CPU's thread waits for; null until it has waited once.
static HALT: AtomicPtr<Condition> = AtomicPtr::new(null_mut());
/// 1 while the CPU's thread waits, 0 from the moment when it is woken.
static CPU_WAITS: AtomicU32 = AtomicU32::new(1);

static REAL_WAIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static REAL_BROADCAST: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static REAL_POLL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The C library's function of this name, looked up once.
fn real(kept: &AtomicPtr<c_void>, name: &CStr, version: &CStr) -> *mut c_void {
    let known = kept.load(SeqCst);
    if !known.is_null() {
        return known;
    }
    // SAFETY: both strings end in NUL.
    let mut found = unsafe { dlvsym(NEXT, name.as_ptr(), version.as_ptr()) };
    if found.is_null() {
        // SAFETY: the string ends in NUL.
        found = unsafe { dlsym(NEXT, name.as_ptr()) };
    }
    if found.is_null() {
        // SAFETY: ends the process; without the C library's own function nothing can go on.
        unsafe { abort() }
    }
    kept.store(found, SeqCst);
    found
}

fn in_main_thread() -> bool {
    // SAFETY: neither call has preconditions.
    unsafe { syscall(system::GETTID) == c_long::from(getpid()) }
}

/// Waits as the C library does, and notes when the CPU's thread waits.
///
/// # Safety
/// As pthread_cond_wait.
#[no_mangle]
pub unsafe extern "C" fn pthread_cond_wait(condition: *mut Condition, mutex: *mut Mutex) -> c_int {
    let found = real(&REAL_WAIT, c"pthread_cond_wait", system::CONDITIONS);
    // SAFETY: this is the function of that name, with this signature.
    let wait: Wait = unsafe { core::mem::transmute(found) };
    if in_main_thread() {
        if HALT.load(SeqCst).is_null() {
            BIG_LOCK.store(mutex, SeqCst);
        }
        // SAFETY: as required of the caller.
        return unsafe { wait(condition, mutex) };
    }
    let of_cpu = mutex == BIG_LOCK.load(SeqCst);
    if of_cpu {
        let _ = HALT.compare_exchange(null_mut(), condition, SeqCst, SeqCst);
        tell_main_loop();
    }
    // SAFETY: as required of the caller.
    let answer = unsafe { wait(condition, mutex) };
    if of_cpu {
        CPU_WAITS.store(0, SeqCst);
    }
    answer
}

/// Wakes as the C library does; a CPU that the main loop wakes counts as running from here on.
///
/// # Safety
/// As pthread_cond_broadcast.
#[no_mangle]
pub unsafe extern "C" fn pthread_cond_broadcast(condition: *mut Condition) -> c_int {
    let found = real(
        &REAL_BROADCAST,
        c"pthread_cond_broadcast",
        system::CONDITIONS,
    );
    // SAFETY: this is the function of that name, with this signature.
    let broadcast: Broadcast = unsafe { core::mem::transmute(found) };
    if condition == HALT.load(SeqCst) && in_main_thread() {
        CPU_WAITS.store(0, SeqCst);
    }
    // SAFETY: as required of the caller.
    unsafe { broadcast(condition) }
}

/// Polls as the C library does; the main loop then waits for the CPU's thread to wait.
///
/// # Safety
/// As ppoll.
#[no_mangle]
pub unsafe extern "C" fn ppoll(
    files: *mut c_void,
    count: u64,
    time: *const c_void,
    signals: *const c_void,
) -> c_int {
    let found = real(&REAL_POLL, c"ppoll", c"GLIBC_2.4");
    // SAFETY: this is the function of that name, with this signature.
    let poll: Poll = unsafe { core::mem::transmute(found) };
    // SAFETY: as required of the caller.
    let answer = unsafe { poll(files, count, time, signals) };
    if !HALT.load(SeqCst).is_null() && in_main_thread() {
        wait_for_cpu();
    }
    answer
}

fn tell_main_loop() {
    CPU_WAITS.store(1, SeqCst);
    // SAFETY: the address is that of a static.
    unsafe {
        syscall(
            system::FUTEX,
            CPU_WAITS.as_ptr(),
            FUTEX_WAKE_PRIVATE,
            c_int::MAX,
        )
    };
}

fn wait_for_cpu() {
    while CPU_WAITS.load(SeqCst) == 0 {
        // SAFETY: the addresses are those of statics.
        let answer = unsafe {
            syscall(
                system::FUTEX,
                CPU_WAITS.as_ptr(),
                FUTEX_WAIT_PRIVATE,
                0 as c_int,
                &PATIENCE as *const Timespec,
                null::<c_void>(),
                0 as c_int,
            )
        };
        if answer != 0 && CPU_WAITS.load(SeqCst) == 0 {
            return;
        }
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { abort() }
}
