//! The built object, preloaded into a program whose two threads call what QEMU's main loop and its CPU's thread call,
//! in the same order. The program is this test itself, started again with a role as its argument. `build-plugin --test`
//! says in PRELOADED where the object is.

use std::ffi::{c_int, c_void};
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// As large as any C library's mutex or condition; all zero is the initial state of both.
#[repr(C, align(16))]
struct Opaque(std::cell::UnsafeCell<[u8; 64]>);

// SAFETY: the C library's functions may be called from any thread.
unsafe impl Sync for Opaque {}

impl Opaque {
    const fn new() -> Self {
        Self(std::cell::UnsafeCell::new([0; 64]))
    }

    fn at(&self) -> *mut c_void {
        self.0.get().cast()
    }
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn pthread_mutex_lock(mutex: *mut c_void) -> c_int;
    fn pthread_mutex_unlock(mutex: *mut c_void) -> c_int;
    fn pthread_cond_wait(condition: *mut c_void, mutex: *mut c_void) -> c_int;
    fn pthread_cond_broadcast(condition: *mut c_void) -> c_int;
    fn ppoll(files: *mut c_void, n: u64, time: *const Timespec, mask: *const c_void) -> c_int;
}

static BIG_LOCK: Opaque = Opaque::new();
static CREATED: Opaque = Opaque::new();
static HALT: Opaque = Opaque::new();
static CPU_IS_CREATED: AtomicBool = AtomicBool::new(false);
static CPU_HAS_WORK: AtomicBool = AtomicBool::new(false);
static CPU_RUNS: AtomicBool = AtomicBool::new(false);
static MAIN_LOOP_CAME_OUT: AtomicBool = AtomicBool::new(false);

/// As in QEMU 7.2's table of helpers: a function and its name. This program has nothing of what else is needed there.
#[repr(C)]
struct Helper(extern "C" fn(), &'static std::ffi::CStr);

extern "C" fn nothing() {}

#[used]
static HELPERS: [Helper; 2] = [
    Helper(nothing, c"cmpxchg8b_unlocked"),
    Helper(nothing, c"cmpxchg16b_unlocked"),
];

/// How often the CPU is woken.
const ROUNDS: usize = 5;
/// How long the CPU runs at most each time; well under lockstep's patience.
const RUN: Duration = Duration::from_millis(50);

fn lock() {
    // SAFETY: an initialized mutex that this thread does not hold.
    unsafe { pthread_mutex_lock(BIG_LOCK.at()) };
}

fn unlock() {
    // SAFETY: this thread holds it.
    unsafe { pthread_mutex_unlock(BIG_LOCK.at()) };
}

fn wait_until(condition: &Opaque, flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        // SAFETY: both are initialized, and this thread holds the lock.
        unsafe { pthread_cond_wait(condition.at(), BIG_LOCK.at()) };
    }
}

fn broadcast(condition: &Opaque) {
    // SAFETY: an initialized condition.
    unsafe { pthread_cond_broadcast(condition.at()) };
}

/// The CPU's thread: waits to be let go, runs, and is idle again. It `idles` or runs for ever.
fn cpu(idles: bool) {
    lock();
    CPU_IS_CREATED.store(true, SeqCst);
    broadcast(&CREATED);
    loop {
        wait_until(&HALT, &CPU_HAS_WORK);
        CPU_HAS_WORK.store(false, SeqCst);
        unlock();
        let start = Instant::now();
        while !idles || (!MAIN_LOOP_CAME_OUT.load(SeqCst) && start.elapsed() < RUN) {
            thread::sleep(Duration::from_millis(1));
        }
        lock();
        CPU_RUNS.store(false, SeqCst);
    }
}

/// As the main loop does: something is due, the CPU is woken, and the loop sleeps until there is more to do. Gives
/// whether the CPU was still running as the loop came out of its sleep.
fn round() -> bool {
    lock();
    MAIN_LOOP_CAME_OUT.store(false, SeqCst);
    CPU_RUNS.store(true, SeqCst);
    CPU_HAS_WORK.store(true, SeqCst);
    broadcast(&HALT);
    unlock();
    assert_eq!(sleep_a_little(), 0, "ppoll's answer is the C library's");
    let beside = CPU_RUNS.load(SeqCst);
    MAIN_LOOP_CAME_OUT.store(true, SeqCst);
    beside
}

fn sleep_a_little() -> c_int {
    let time = Timespec {
        seconds: 0,
        nanoseconds: 1_000_000,
    };
    // SAFETY: no files, a time that outlives the call, and no mask.
    unsafe { ppoll(null_mut(), 0, &time, null()) }
}

/// Prints in how many rounds the main loop ran beside the CPU.
fn as_qemu(idles: bool, rounds: usize) {
    // Older compilers' #[used] does not keep the linker from leaving it out.
    std::hint::black_box(&HELPERS);
    assert_eq!(
        sleep_a_little(),
        0,
        "before there is a CPU nobody is waited for"
    );
    lock();
    thread::spawn(move || cpu(idles));
    wait_until(&CREATED, &CPU_IS_CREATED);
    unlock();
    let mut beside = 0;
    for _ in 0..rounds {
        beside += usize::from(round());
        while idles && CPU_RUNS.load(SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    println!("{beside}");
}

/// Starts this program again in a role, with the object preloaded or not; what it prints.
fn beside(role: &str, preloaded: bool) -> usize {
    let mut program = Command::new(std::env::current_exe().expect("Linux tells"));
    program.arg(role);
    if preloaded {
        let object =
            std::env::var_os("PRELOADED").expect("PRELOADED: run crates/build-plugin --test");
        assert!(
            std::path::Path::new(&object).is_file(),
            "{object:?} is missing: the dynamic linker would only warn"
        );
        program.env("LD_PRELOAD", object);
    }
    let output = program.output().expect("it can be started");
    let (told, complaint) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{role}: {complaint}");
    assert_eq!(
        complaint.contains("lockstep: the flags behind cmpxchg8b"),
        preloaded,
        "where they cannot be mended, it is said: {complaint}"
    );
    told.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{role}: {told}{complaint}"))
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("idles") => as_qemu(true, ROUNDS),
        Some("never-idles") => as_qemu(false, 1),
        _ => {
            assert_ne!(
                beside("idles", false),
                0,
                "the program shows what lockstep is for"
            );
            assert_eq!(beside("idles", true), 0, "the main loop waits for the CPU");
            assert_eq!(beside("never-idles", true), 1, "its patience has an end");
            println!("preloaded: 4 checks passed");
        }
    }
}
