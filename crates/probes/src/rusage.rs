//! The end of a program: its status, and what it used.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;

use nix::errno::Errno;
use nix::unistd::Pid;

/// Wait for the program's end: the status as waitpid gives it, and the fields of `struct rusage` by name.
pub fn wait4(pid: Pid) -> io::Result<(libc::c_int, BTreeMap<String, f64>)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: both pointers are to memory of the right type that outlives the call.
    Errno::result(unsafe { libc::wait4(pid.as_raw(), &mut status, 0, usage.as_mut_ptr()) })?;
    // SAFETY: wait4 succeeded, and has filled it in.
    Ok((status, rusage(&unsafe { usage.assume_init() })))
}

fn rusage(usage: &libc::rusage) -> BTreeMap<String, f64> {
    let nanoseconds =
        |time: libc::timeval| (time.tv_sec * 1_000_000_000 + time.tv_usec * 1000) as f64;
    BTreeMap::from([
        ("utime_ns".into(), nanoseconds(usage.ru_utime)),
        ("stime_ns".into(), nanoseconds(usage.ru_stime)),
        ("minflt".into(), usage.ru_minflt as f64),
        ("majflt".into(), usage.ru_majflt as f64),
        ("nvcsw".into(), usage.ru_nvcsw as f64),
        ("nivcsw".into(), usage.ru_nivcsw as f64),
        ("inblock".into(), usage.ru_inblock as f64),
        ("oublock".into(), usage.ru_oublock as f64),
        ("maxrss_kib".into(), usage.ru_maxrss as f64),
    ])
}
