//! `ksymbols FILE PROGRAM ARGUMENT…`: runs the program, then tells in FILE what the kernel gave symbols to meanwhile.
//! `ksymbols --listed`: prints what /proc/kallsyms has of generated code now.

mod event;
mod records;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use event::Ring;

/// As a shell says that a program could not be started.
const NOT_STARTED: i32 = 127;

static PROGRAM: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: libc::c_int) {
    // SAFETY: kill(2) may be called in a handler (signal-safety(7)).
    unsafe { libc::kill(PROGRAM.load(Ordering::Relaxed), signal) };
}

fn main() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words == ["--listed"] {
        return list();
    }
    let [file, program, arguments @ ..] = &words[..] else {
        eprintln!("usage: ksymbols FILE PROGRAM [ARGUMENT...], or ksymbols --listed");
        std::process::exit(2);
    };
    let rings = Ring::of_all();
    let status = match Command::new(program).args(arguments).spawn() {
        Ok(child) => ended(child),
        Err(error) => {
            eprintln!("ksymbols: {}: {error}", program.to_string_lossy());
            std::process::exit(NOT_STARTED);
        }
    };
    match rings {
        Ok(rings) => tell(file, &rings),
        Err(error) => eprintln!("ksymbols: perf_event_open: {error}"),
    }
    std::process::exit(status.code().unwrap_or(128 + status.signal().unwrap_or(0)));
}

fn list() {
    match fs::read_to_string("/proc/kallsyms") {
        Ok(text) => print!("{}", records::listed(&text)),
        Err(error) => {
            eprintln!("ksymbols: /proc/kallsyms: {error}");
            std::process::exit(1);
        }
    }
}

/// Waits for it; meanwhile it is asked to end whenever this program is.
fn ended(mut child: Child) -> ExitStatus {
    PROGRAM.store(child.id() as i32, Ordering::Relaxed);
    let handler = pass_on as extern "C" fn(libc::c_int);
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler calls nothing but kill(2).
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
    child.wait().expect("a child can be waited for")
}

fn tell(file: &OsStr, rings: &[Ring]) {
    let told: Option<String> = rings
        .iter()
        .map(|ring| records::lines(&ring.bytes()))
        .collect();
    let text = told.map_or(String::new(), |lines| lines + "end\n");
    if let Err(error) = fs::write(file, text) {
        eprintln!("ksymbols: {}: {error}", file.to_string_lossy());
    }
}
