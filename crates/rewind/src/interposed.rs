//! The functions that QEMU calls in place of the C library's and glib's.

use crate::c_library::{in_main_thread, next, symbol};
use crate::control::{shared, DONE, PLAN, REWIND};
use crate::start::{back_to_start, give_plan};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_uint, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

type Poll = unsafe extern "C" fn(*mut c_void, u64, *const c_void, *const c_void) -> c_int;
type NewRandom = unsafe extern "C" fn(*const u32, c_uint) -> *mut c_void;
type SetRandom = unsafe extern "C" fn(*mut c_void, *const u32, c_uint);
type Exit = unsafe extern "C" fn(c_int) -> !;
type Shutdown = unsafe extern "C" fn(c_int);

/// Polls as the C library does; the main loop then does what ktrial asks for, before it takes a command.
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
    // SAFETY: the C library's function, as required of the caller. The main loop holds no lock here.
    unsafe {
        let poll = transmute::<*mut c_void, Poll>(next(c"ppoll"));
        let answer = poll(files, count, time, signals);
        if in_main_thread() {
            obey();
        }
        answer
    }
}

/// # Safety
/// In the main thread, which has no lock of QEMU's.
unsafe fn obey() {
    let Some(control) = shared() else { return };
    let answer = match control.command.swap(0, SeqCst) {
        // SAFETY: as required of the caller.
        REWIND => unsafe { back_to_start(control) },
        // SAFETY: as above.
        PLAN => unsafe { give_plan(control) },
        _ => return,
    };
    if answer == DONE {
        RANDOM.set_back();
    }
    control.answer.store(answer, SeqCst);
}

/// Most words of a seed of QEMU's: it has 64 bits.
const SEED: usize = 2;

/// The generator of the CPU's thread, which is the second to have one, and what it was seeded with.
struct Random {
    made: AtomicUsize,
    generator: AtomicUsize,
    seed: UnsafeCell<[u32; SEED]>,
}

// SAFETY: the seed is written once, by the CPU's thread as it begins, and read while that stands still.
unsafe impl Sync for Random {}

static RANDOM: Random = Random {
    made: AtomicUsize::new(0),
    generator: AtomicUsize::new(0),
    seed: UnsafeCell::new([0; SEED]),
};

impl Random {
    fn set_back(&self) {
        let generator = self.generator.load(SeqCst) as *mut c_void;
        if let (false, Some(set)) = (generator.is_null(), symbol(c"g_rand_set_seed_array")) {
            // SAFETY: glib's function, and a generator of its own, which nobody uses while the guest stands still.
            unsafe {
                let set = transmute::<*mut c_void, SetRandom>(set);
                set(generator, self.seed.get().cast(), SEED as c_uint);
            }
        }
    }
}

/// Makes a generator of random numbers, as glib does.
///
/// # Safety
/// As g_rand_new_with_seed_array.
#[no_mangle]
pub unsafe extern "C" fn g_rand_new_with_seed_array(
    seed: *const u32,
    length: c_uint,
) -> *mut c_void {
    // SAFETY: glib's function, as required of the caller, who has `length` words.
    unsafe {
        let make = transmute::<*mut c_void, NewRandom>(next(c"g_rand_new_with_seed_array"));
        let made = make(seed, length);
        if length as usize == SEED && RANDOM.made.fetch_add(1, SeqCst) == 1 {
            core::ptr::copy_nonoverlapping(seed, RANDOM.seed.get().cast(), SEED);
            RANDOM.generator.store(made as usize, SeqCst);
        }
        made
    }
}

/// `SHUTDOWN_CAUSE_GUEST_SHUTDOWN`
const GUEST_SHUTDOWN: c_int = 6;
/// QEMU's status where the agent has done all.
const ALL_DONE: c_int = 1;
/// What isa-debug-exit has done when it calls `exit` (`debug_exit_write`): eight bytes of stack, and the status.
const DEBUG_EXIT: [u8; 9] = [0x48, 0x83, 0xec, 0x08, 0x8d, 0x7c, 0x12, 0x01, 0xe8];
/// From there to the call's end.
const TO_RETURN: usize = 13;

// `exit` does not return. Of isa-debug-exit it does here, to that function's caller: behind its own address and the eight
// bytes. The guest then stands at its next instruction.
core::arch::global_asm!(
    ".globl rewind_exit",
    ".hidden rewind_exit",
    ".type rewind_exit,@function",
    "rewind_exit:",
    "push rdi",
    "mov rsi, [rsp + 8]",
    "call {stops}",
    "pop rdi",
    "test eax, eax",
    "jnz 2f",
    "sub rsp, 8",
    "call {exit}",
    "2:",
    "add rsp, 16",
    "ret",
    stops = sym stops_instead,
    exit = sym exit_indeed,
);

extern "C" {
    fn rewind_exit();
}

/// Ends the process as the C library does; where the agent has done all, only the guest stops.
///
/// # Safety
/// As exit.
#[no_mangle]
pub unsafe extern "C" fn exit(status: c_int) {
    // What is assembled is not exported; this is, and has neither a frame nor anything else of its own: a function that
    // calls nothing, and seems to go on.
    // SAFETY: a function of this type, with the arguments where they are.
    unsafe { core::arch::asm!("jmp {}", sym rewind_exit, in("edi") status, options(nostack)) }
}

/// Whether the guest stops, and QEMU stays; `back`: where the call of `exit` would return to.
unsafe extern "C" fn stops_instead(status: c_int, back: *const u8) -> c_int {
    if shared().is_none() || in_main_thread() || status != ALL_DONE {
        return 0;
    }
    // SAFETY: code before a call, of QEMU's or one of its libraries.
    let before = unsafe { core::slice::from_raw_parts(back.sub(TO_RETURN), DEBUG_EXIT.len()) };
    let (true, Some(shutdown)) = (
        before == DEBUG_EXIT,
        symbol(c"qemu_system_shutdown_request"),
    ) else {
        return 0;
    };
    // SAFETY: QEMU's function, which any thread may call.
    unsafe { transmute::<*mut c_void, Shutdown>(shutdown)(GUEST_SHUTDOWN) };
    1
}

unsafe extern "C" fn exit_indeed(status: c_int) -> ! {
    // SAFETY: the C library's function.
    unsafe { transmute::<*mut c_void, Exit>(next(c"exit"))(status) }
}
