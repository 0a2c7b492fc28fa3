//! The built object, preloaded into a program that writes as QEMU does: single bytes to a file, messages to a socket,
//! and a main loop that sleeps. The program is this test itself, started again with a file as its argument.
//! `build-plugin --test` says in PRELOADED where the object is.

use std::ffi::{c_int, c_void};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::thread;
use std::time::Duration;

#[repr(C)]
struct Piece {
    bytes: *const u8,
    length: usize,
}

#[repr(C)]
struct Message {
    name: *mut c_void,
    name_length: u32,
    pieces: *const Piece,
    count: usize,
    control: *mut c_void,
    control_length: usize,
    flags: c_int,
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn writev(file: c_int, pieces: *const Piece, count: c_int) -> isize;
    fn sendmsg(socket: c_int, message: *const Message, flags: c_int) -> isize;
    fn ppoll(files: *mut c_void, n: u64, time: *const Timespec, mask: *const c_void) -> c_int;
}

fn put(file: &File, bytes: &[u8]) {
    let piece = Piece {
        bytes: bytes.as_ptr(),
        length: bytes.len(),
    };
    // SAFETY: one piece, which outlives the call.
    let written = unsafe { writev(file.as_raw_fd(), &piece, 1) };
    assert_eq!(usize::try_from(written), Ok(bytes.len()));
}

fn say(socket: &UnixStream) {
    let piece = Piece {
        bytes: b"event".as_ptr(),
        length: 5,
    };
    let message = Message {
        name: null_mut(),
        name_length: 0,
        pieces: &piece,
        count: 1,
        control: null_mut(),
        control_length: 0,
        flags: 0,
    };
    // SAFETY: a message without address and control data, which outlives the call.
    assert_eq!(unsafe { sendmsg(socket.as_raw_fd(), &message, 0) }, 5);
}

fn sleep(time: Duration) {
    let time = Timespec {
        seconds: 0,
        nanoseconds: i64::from(time.subsec_nanos()),
    };
    // SAFETY: no files, a time that outlives the call, and no mask.
    assert_eq!(unsafe { ppoll(null_mut(), 0, &time, null()) }, 0);
}

/// Prints what the file has at some moments.
fn as_qemu(path: &Path) {
    let file = File::create(path).expect("a new file");
    let (socket, _other) = UnixStream::pair().expect("two ends");
    let has = || fs::read_to_string(path).expect("the file");
    for byte in [b"a", b"b"] {
        put(&file, byte);
    }
    println!("kept: {}", has());
    say(&socket);
    println!("after a message: {}", has());
    put(&file, b"c");
    put(&file, b"de");
    println!("after a longer piece: {}", has());
    put(&file, b"f");
    sleep(Duration::from_millis(1));
    println!("after a pause: {}", has());
    let writer = thread::spawn({
        let file = file.try_clone().expect("the same file");
        let path = path.to_owned();
        move || {
            thread::sleep(Duration::from_millis(20));
            put(&file, b"g");
            for _ in 0..600 {
                thread::sleep(Duration::from_millis(1));
                if fs::read_to_string(&path).expect("the file").ends_with('g') {
                    return "within the pause";
                }
            }
            "too late"
        }
    });
    sleep(Duration::from_millis(900));
    println!("{}: {}", writer.join().expect("it ends"), has());
    put(&file, b"h");
    println!("before the end: {}", has());
    // As in QEMU, the file is open until the process has ended.
    std::mem::forget(file);
}

fn told(path: &Path, preloaded: bool) -> Vec<String> {
    let mut program = Command::new(std::env::current_exe().expect("Linux tells"));
    program.arg(path);
    if preloaded {
        let object =
            std::env::var_os("PRELOADED").expect("PRELOADED: run crates/build-plugin --test");
        assert!(
            Path::new(&object).is_file(),
            "{object:?} is missing: the dynamic linker would only warn"
        );
        program.env("LD_PRELOAD", object);
    }
    let output = program.output().expect("it can be started");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    assert_eq!(fs::read_to_string(path).expect("the file"), "abcdefgh");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

fn main() {
    if let Some(path) = std::env::args_os().nth(1) {
        return as_qemu(Path::new(&path));
    }
    let path = std::env::temp_dir().join(format!("coalesce-{}", std::process::id()));
    let (plain, kept) = (told(&path, false), told(&path, true));
    fs::remove_file(&path).expect("it was made");
    assert_eq!(plain[0], "kept: ab", "without the object nothing is kept");
    assert_eq!(
        kept,
        [
            "kept: ",
            "after a message: ab",
            "after a longer piece: abcde",
            "after a pause: abcdef",
            "within the pause: abcdefg",
            "before the end: abcdefg",
        ]
    );
    println!("preloaded: 6 checks passed");
}
