//! Starts a program as posix_spawn(3) does, in this process's memory until it executes, which costs the least; and, as
//! that cannot, in a process group, on CPUs and in a control group of its own from its first instruction.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::unistd::Pid;
use wire::steps::Run;

use crate::order::{Order, User};

const STACK: usize = 64 << 10;

/// Where programs run.
pub struct Place {
    affinity: Option<libc::cpu_set_t>,
    cgroup: Option<File>,
    nothing: File,
}

impl Place {
    /// As the order has it.
    pub fn of(order: &Order) -> io::Result<Self> {
        let cgroup = match order.cgroup.as_str() {
            "" => None,
            directory => Some(
                OpenOptions::new()
                    .write(true)
                    .open(format!("{directory}/cgroup.procs"))?,
            ),
        };
        Ok(Self {
            affinity: affinity(&order.cpus)?,
            cgroup,
            nothing: File::open("/dev/null")?,
        })
    }
}

fn affinity(cpus: &[usize]) -> io::Result<Option<libc::cpu_set_t>> {
    if cpus.is_empty() {
        return Ok(None);
    }
    // SAFETY: a bit mask; all zeros is the empty one.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::other(format!("there is no CPU {cpu}")));
        }
        // SAFETY: below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    Ok(Some(set))
}

/// A program that runs.
#[derive(Debug)]
pub struct Child {
    /// Its process, the leader of its process group.
    pub pid: Pid,
    /// Readable once it has ended.
    pub end: OwnedFd,
}

/// All that the child needs between clone and execve, where it may not allocate.
struct Plan<'a> {
    program: *const c_char,
    argv: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    directory: *const c_char,
    standard: [c_int; 3],
    affinity: *const libc::cpu_set_t,
    cgroup: c_int,
    user: Option<&'a User>,
    error: c_int,
}

/// A program with all its words in the form that execve takes.
pub struct Prepared<'a> {
    argv: Vec<CString>,
    environment: Vec<CString>,
    directory: CString,
    user: Option<&'a User>,
    stack: Vec<u8>,
}

impl<'a> Prepared<'a> {
    /// Everything that can be done before the clock is read.
    pub fn new(run: &Run, user: Option<&'a User>) -> io::Result<Self> {
        if run.argv.is_empty() {
            return Err(io::Error::other("its argv is empty"));
        }
        let assigned = run
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        Ok(Self {
            argv: words(run.argv.iter().cloned())?,
            environment: words(assigned)?,
            directory: CString::new(run.directory.as_str())?,
            user,
            stack: vec![0; STACK],
        })
    }

    /// Start it. Its standard input is empty; its outputs go to the two descriptors.
    pub fn start(&mut self, place: &Place, stdout: c_int, stderr: c_int) -> io::Result<Child> {
        let mut plan = Plan {
            program: self.argv[0].as_ptr(),
            argv: pointers(&self.argv),
            environment: pointers(&self.environment),
            directory: self.directory.as_ptr(),
            standard: [place.nothing.as_raw_fd(), stdout, stderr],
            affinity: place.affinity.as_ref().map_or(ptr::null(), ptr::from_ref),
            cgroup: place.cgroup.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            user: self.user,
            error: 0,
        };
        let mut pidfd: c_int = -1;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        // SAFETY: one past the end of the stack, which grows down.
        let top = unsafe { self.stack.as_mut_ptr().add(STACK) };
        let top = top.map_addr(|address| address & !15);
        // SAFETY: this process has one thread, and stands still (CLONE_VFORK) until the child has executed a program or
        // ended, so that all of `plan` and the stack outlive the child's use of them.
        let pid = unsafe {
            libc::clone(
                execute,
                top.cast(),
                flags,
                ptr::from_mut(&mut plan).cast(),
                &raw mut pidfd,
            )
        };
        let pid = Pid::from_raw(Errno::result(pid)?);
        // SAFETY: the kernel made it for us (CLONE_PIDFD), and nobody else owns it.
        let end = unsafe { OwnedFd::from_raw_fd(pidfd) };
        // SAFETY: the child wrote it, before it ended; read only now, not kept from before.
        match unsafe { ptr::read_volatile(&raw const plan.error) } {
            0 => Ok(Child { pid, end }),
            error => {
                nix::sys::wait::waitpid(pid, None)?;
                Err(io::Error::from_raw_os_error(error))
            }
        }
    }
}

fn words(given: impl Iterator<Item = String>) -> io::Result<Vec<CString>> {
    given.map(|word| Ok(CString::new(word)?)).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    let starts = strings.iter().map(|string| CStr::as_ptr(string));
    starts.chain([ptr::null()]).collect()
}

/// In the child.
extern "C" fn execute(plan: *mut c_void) -> c_int {
    // SAFETY: the parent handed over its plan, and waits.
    let plan = unsafe { &mut *plan.cast::<Plan>() };
    // SAFETY: only system calls, on values that the parent prepared.
    if unsafe { become_the_program(plan) }.is_none() {
        let error = Errno::last_raw();
        // SAFETY: a place in the parent's memory, which the parent reads when the child has ended.
        unsafe { ptr::write_volatile(&raw mut plan.error, error) };
    }
    // SAFETY: ends the child without anything of the parent's that is to run at exit.
    unsafe { libc::_exit(127) }
}

/// None where a system call failed; does not return where all succeed.
///
/// # Safety
/// `plan` holds valid descriptors, C strings, and arrays of them that end with a null pointer.
unsafe fn become_the_program(plan: &Plan) -> Option<()> {
    let done = |answer: c_int| (answer != -1).then_some(());
    // SAFETY: system calls, and what is handed to them is valid by this function's own condition.
    unsafe {
        // A group of its own, to be killed as one; not a session, each of which has its own share of the CPUs where
        // the kernel groups tasks by session (CONFIG_SCHED_AUTOGROUP). The launcher has left the terminal's.
        done(libc::setpgid(0, 0))?;
        if plan.cgroup >= 0 {
            // "0" stands for the process that writes it.
            done(libc::write(plan.cgroup, c"0".as_ptr().cast(), 1) as c_int)?;
        }
        if !plan.affinity.is_null() {
            let size = mem::size_of::<libc::cpu_set_t>();
            done(libc::sched_setaffinity(0, size, plan.affinity))?;
        }
        // The system calls themselves: the C library's functions tell all threads, and this memory is the parent's.
        if let Some(user) = plan.user {
            let call = |answer: libc::c_long| (answer != -1).then_some(());
            call(libc::syscall(
                libc::SYS_setgroups,
                user.groups.len(),
                user.groups.as_ptr(),
            ))?;
            call(libc::syscall(libc::SYS_setgid, user.gid))?;
            call(libc::syscall(libc::SYS_setuid, user.uid))?;
        }
        done(libc::chdir(plan.directory))?;
        for (number, descriptor) in (0..).zip(plan.standard) {
            done(libc::dup2(descriptor, number))?;
        }
        // Rust's start-up ignores it, and what is ignored stays so across execve.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        done(libc::execve(
            plan.program,
            plan.argv.as_ptr(),
            plan.environment.as_ptr(),
        ))
    }
}
