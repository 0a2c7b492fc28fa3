//! A crowd of workers, as rt-tests' hackbench makes it: everyone ready first, then one byte starts them all.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::failure::Failure;
use crate::files::{pipe, read_whole, socketpair, write_whole};
use crate::memory::Pages;
use crate::processes::{fork_worker, reap_any};

const FILL: u8 = 0x5a;
const THREAD_STACK: usize = 128 * 1024;

/// How many, of what, with how much to say.
#[derive(Clone, Copy)]
pub struct Size {
    /// Groups.
    pub groups: usize,
    /// Messages from each sender to each receiver.
    pub loops: usize,
    /// Senders in a group, and receivers in a group.
    pub fds: usize,
    /// Bytes in a message.
    pub bytes: usize,
    /// Threads instead of processes.
    pub threads: bool,
    /// Pipes instead of socket pairs.
    pub pipes: bool,
}

/// Workers that wait for their start.
pub struct Crowd {
    processes: Vec<libc::pid_t>,
    threads: Vec<JoinHandle<()>>,
    start: OwnedFd,
    /// Threads share the descriptors, which must stay open until the last has ended.
    _shared: Vec<Arc<Group>>,
}

/// One group's channels, one for each receiver.
struct Group {
    outputs: Vec<OwnedFd>,
    inputs: Vec<OwnedFd>,
}

/// What tells of readiness, and what is waited on for the start.
struct Gate {
    ready: OwnedFd,
    started: OwnedFd,
}

impl Crowd {
    /// Make all workers and wait until each is ready.
    pub fn assemble(size: &Size) -> Result<Self, Failure> {
        let (told, ready) = pipe()?;
        let (started, start) = pipe()?;
        let gate = Arc::new(Gate { ready, started });
        let mut crowd = Self {
            processes: Vec::new(),
            threads: Vec::new(),
            start,
            _shared: Vec::new(),
        };
        for _ in 0..size.groups {
            let group = Arc::new(Group::new(size)?);
            for number in 0..size.fds {
                crowd.add(size, &group, &gate, Role::Receiver(number))?;
            }
            for _ in 0..size.fds {
                crowd.add(size, &group, &gate, Role::Sender)?;
            }
            // Processes have their own copies by now, and the parent closes its descriptors.
            if size.threads {
                crowd._shared.push(group);
            }
        }
        for _ in 0..size.groups * size.fds * 2 {
            read_whole(&told, &mut [0])?;
        }
        Ok(crowd)
    }

    fn add(
        &mut self,
        size: &Size,
        group: &Arc<Group>,
        gate: &Arc<Gate>,
        role: Role,
    ) -> Result<(), Failure> {
        if !size.threads {
            self.processes
                .push(fork_worker(|| role.play(size, group, gate))?);
            return Ok(());
        }
        let (size, group, gate) = (*size, Arc::clone(group), Arc::clone(gate));
        let worker = move || {
            if let Err(failure) = role.play(&size, &group, &gate) {
                eprintln!("work: hackbench: a thread: {failure}");
                // The others would wait for ever.
                std::process::exit(1);
            }
        };
        let made = thread::Builder::new()
            .stack_size(THREAD_STACK)
            .spawn(worker);
        self.threads
            .push(made.map_err(|error| Failure::io("making a thread", &error))?);
        Ok(())
    }

    /// Start all workers and wait for the last to end: the operation that is measured.
    pub fn run(mut self) -> Result<(), Failure> {
        write_whole(&self.start, &[1])?;
        while !self.processes.is_empty() {
            let pid = reap_any()?;
            self.processes.retain(|&other| other != pid);
        }
        for worker in self.threads.drain(..) {
            worker
                .join()
                .map_err(|_| Failure::wrong("a thread panicked"))?;
        }
        Ok(())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for &pid in &self.processes {
            // SAFETY: our own child, not waited for yet.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

impl Group {
    fn new(size: &Size) -> Result<Self, Failure> {
        let channels = (0..size.fds).map(|_| if size.pipes { pipe() } else { socketpair() });
        let (outputs, inputs) = channels.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        Ok(Self { outputs, inputs })
    }
}

impl Gate {
    /// Say that this worker is ready, and wait for the start.
    fn pass(&self) -> Result<(), Failure> {
        write_whole(&self.ready, &[1])?;
        let mut wanted = libc::pollfd {
            fd: self.started.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure, as said.
        match unsafe { libc::poll(&mut wanted, 1, -1) } {
            1 => Ok(()),
            _ => Err(Failure::system("poll")),
        }
    }
}

#[derive(Clone, Copy)]
enum Role {
    Sender,
    Receiver(usize),
}

impl Role {
    fn play(self, size: &Size, group: &Group, gate: &Gate) -> Result<(), Failure> {
        let mut message = Pages::new(size.bytes)?;
        let message = &mut message[..size.bytes];
        match self {
            Self::Sender => {
                message.fill(FILL);
                gate.pass()?;
                send(size, group, message)
            }
            Self::Receiver(number) => {
                gate.pass()?;
                receive(size.loops * size.fds, &group.outputs[number], message)
            }
        }
    }
}

fn send(size: &Size, group: &Group, message: &[u8]) -> Result<(), Failure> {
    for _ in 0..size.loops {
        for receiver in &group.inputs {
            write_whole(receiver, message)?;
        }
    }
    Ok(())
}

fn receive(messages: usize, channel: &OwnedFd, buffer: &mut [u8]) -> Result<(), Failure> {
    let mut missing = messages * buffer.len();
    while missing > 0 {
        // SAFETY: the kernel writes at most the buffer's length into it.
        let got = unsafe {
            libc::read(
                channel.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
            )
        };
        match usize::try_from(got) {
            Ok(1..) if buffer[0] == FILL && buffer[got as usize - 1] == FILL => {
                missing -= got as usize
            }
            Ok(_) => {
                return Err(Failure::wrong(
                    "a receiver got something else than was sent",
                ))
            }
            Err(_) => return Err(Failure::system("read")),
        }
    }
    Ok(())
}
