//! The processor's flags behind `cmpxchg8b` and `cmpxchg16b`, which QEMU up to 7.2 takes from before their block.
//!
//! These instructions change the zero flag only. QEMU's helper for them (`helper_cmpxchg16b_unlocked`) computes all flags
//! first, of what set them last: `cpu_cc_compute_all(env, env->cc_op)`. But within a block of code QEMU writes `cc_op` only
//! at its end. Where something else in the same block has set flags before, their operands are in `env` and the
//! operation is not: a comparison's operand, an address perhaps, is taken for flags, and an interrupt stores them as
//! EFLAGS. (QEMU 8 has no such helper any more.)
//!
//! QEMU keeps for each instruction of a block which operation set flags last, for instructions that fault. So the helper's
//! call goes here instead, where that is asked for by the helper's return address, and the flags are those of a processor.

use crate::c_library::{self, symbol};
use crate::machine_code::{direct, distance, only_call, stub, through, LENGTHS, STUB};
use crate::program::Program;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// As QEMU's table of helpers has them; where CPUs run in threads of their own, others are used.
const NAMES: [&[u8]; HELPERS] = [b"cmpxchg8b_unlocked\0", b"cmpxchg16b_unlocked\0"];
const HELPERS: usize = 2;
/// Bytes of a helper in which its call is looked for: it is at its beginning.
const BEGINNING: usize = 128;
/// Words of the stack in which the helper's return address is looked for, from its call on.
const FRAME: usize = 64;
/// `CC_OP_DYNAMIC`: `env->cc_op` is right.
const AS_IT_IS: u64 = 0;
const NOT_MENDED: &[u8] =
    b"lockstep: the flags behind cmpxchg8b and cmpxchg16b are wrong in this QEMU, and cannot be mended\n";
const NOT_FOUND: &[u8] = b"lockstep: what called QEMU's helper of cmpxchg16b cannot be told\n";

type Flags = unsafe extern "C" fn(*mut c_void, c_int) -> u32;
type Unwind = unsafe extern "C" fn(*mut c_void, usize, *mut u64) -> bool;

static FLAGS: AtomicUsize = AtomicUsize::new(0);
static UNWIND: AtomicUsize = AtomicUsize::new(0);
static FUNCTIONS: [AtomicUsize; HELPERS] = [const { AtomicUsize::new(0) }; HELPERS];

#[used]
#[link_section = ".init_array"]
static AS_IT_IS_LOADED: extern "C" fn() = mend;

/// Before the program begins. A program that has no such helper is left as it is: QEMU 8, or no QEMU at all.
extern "C" fn mend() {
    let Some(program) = Program::own() else {
        return;
    };
    let functions = NAMES.map(|name| program.function_named(name));
    if functions.iter().all(Option::is_none) {
        return;
    }
    if mended(&program, functions).is_none() {
        c_library::say(NOT_MENDED);
    }
}

/// None where something is not as it is known to be: nothing is changed then.
fn mended(program: &Program, functions: [Option<usize>; HELPERS]) -> Option<()> {
    if cfg!(not(target_arch = "x86_64")) {
        return None;
    }
    let [first, second] = functions;
    let functions = [first?, second?];
    let flags = symbol(c"cpu_cc_compute_all")? as usize;
    UNWIND.store(symbol(c"cpu_unwind_state_data")? as usize, Relaxed);
    FLAGS.store(flags, Relaxed);
    let mut calls = [0; HELPERS];
    for (call, function) in calls.iter_mut().zip(functions) {
        let code = program.code(function, BEGINNING)?;
        *call = function + only_call(code, function, flags)?;
    }
    let stubs = c_library::page_below(program.start())?;
    let mut distances = [[0; 4]; HELPERS];
    for (number, &call) in calls.iter().enumerate() {
        FUNCTIONS[number].store(functions[number], Relaxed);
        let to = stubs + number * STUB;
        distances[number] = distance(call, to)?;
        // SAFETY: in the page that was just made, which is of 4096 bytes.
        unsafe { *(to as *mut [u8; STUB]) = stub(asked as *const () as usize, number as u32) };
    }
    // SAFETY: nobody executes anything yet but the dynamic linker; what is written are the distances of two calls.
    let all = unsafe {
        c_library::make_code(stubs)
            && (calls.iter().zip(&distances)).all(|(&at, bytes)| c_library::change_code(at, bytes))
    };
    all.then_some(())
}

/// What the helper asks of `cpu_cc_compute_all`. `stack`: where the call has its return address.
unsafe extern "C" fn asked(
    env: *mut c_void,
    operation: c_int,
    stack: *const usize,
    number: u32,
) -> u32 {
    // SAFETY: both are set, to functions of these types, before a call comes here.
    let (flags, unwind) = unsafe {
        (
            transmute::<usize, Flags>(FLAGS.load(Relaxed)),
            transmute::<usize, Unwind>(UNWIND.load(Relaxed)),
        )
    };
    let helper = FUNCTIONS[number as usize].load(Relaxed);
    // SAFETY: the helper was called by translated code, whose frame and QEMU's loop's are beyond its own.
    let found = unsafe { (1..FRAME).find_map(|at| operation_at(unwind, *stack.add(at), helper)) };
    match found {
        // SAFETY: what the helper calls, with another operation, which is the one that set flags last.
        Some(AS_IT_IS) => unsafe { flags(env, operation) },
        // SAFETY: as above.
        Some(known) => unsafe { flags(env, known as c_int) },
        None => c_library::give_up(NOT_FOUND),
    }
}

/// The operation that set flags last where translated code has called `helper` and goes on at `back`; None where it
/// does not.
///
/// # Safety
/// `unwind` is QEMU's.
unsafe fn operation_at(unwind: Unwind, back: usize, helper: usize) -> Option<u64> {
    let mut kept = [0; 8];
    // QEMU 7.2 does not look at the CPU, and no other version has this function and the helpers.
    // SAFETY: it takes any address, and stores two words (TARGET_INSN_START_WORDS).
    if !unsafe { unwind(core::ptr::null_mut(), back, kept.as_mut_ptr()) } {
        return None;
    }
    // SAFETY: in QEMU's buffer of translated code, which has a prologue at its beginning.
    let before = |length: usize| unsafe {
        core::slice::from_raw_parts((back - length) as *const u8, length)
    };
    let word = through(back, before(LENGTHS[1]));
    // SAFETY: where translated code has the addresses of what is far.
    let far = word.map(|at| unsafe { *(at as *const usize) });
    let is_called = direct(back, before(LENGTHS[0])) == Some(helper) || far == Some(helper);
    is_called.then_some(kept[1])
}
