//! What works beside a task: a thread of its process, or a process. One kind answers: each byte that arrives goes back.

use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::{self, JoinHandle};

use crate::failure::{must, Failure};
use crate::files::{close_all, pipe, read, write};
use crate::processes::Process;

/// A thread that is waited for when this is dropped, or a process that is ended then.
pub struct Companion(Kind);

enum Kind {
    Thread(Option<JoinHandle<()>>),
    Process { _child: Process },
}

impl Companion {
    /// On the CPUs of who starts it. A thread's `work` has to come to its end by itself.
    pub fn start(thread: bool, work: impl FnOnce() + Send + 'static) -> Result<Self, Failure> {
        if thread {
            return Ok(Self(Kind::Thread(Some(thread::spawn(work)))));
        }
        let child = Process::start(|| {
            work();
            Ok(())
        })?;
        Ok(Self(Kind::Process { _child: child }))
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        if let Kind::Thread(thread) = &mut self.0 {
            // It has nothing to say.
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

/// What one side reads from, and what it writes to.
pub struct Ends {
    /// To read from.
    pub from: OwnedFd,
    /// To write to.
    pub to: OwnedFd,
}

/// A companion that sends back what it is sent. It ends when this is dropped.
pub struct Partner {
    // The ends first: with them gone, the companion comes to its end.
    ends: Ends,
    _companion: Companion,
}

impl Partner {
    /// At the other ends of two pipes.
    pub fn start(thread: bool) -> Result<Self, Failure> {
        let (question, to) = pipe()?;
        let (from, answer) = pipe()?;
        Self::between(
            thread,
            Ends { from, to },
            Ends {
                from: question,
                to: answer,
            },
        )
    }

    /// At the ends `theirs` of a connection.
    pub fn between(thread: bool, ours: Ends, theirs: Ends) -> Result<Self, Failure> {
        let copies = [ours.to.as_raw_fd(), ours.from.as_raw_fd()];
        let companion = Companion::start(thread, move || {
            if !thread {
                // With them it would never see an end.
                close_all(&copies);
            }
            echo(&theirs);
        })?;
        Ok(Self {
            ends: ours,
            _companion: companion,
        })
    }

    /// Send a byte, and wait until it is back.
    #[inline(always)]
    pub fn ask(&self, byte: u8) -> Result<(), Failure> {
        let mut answer = [!byte];
        write(&self.ends.to, &[byte])?;
        read(&self.ends.from, &mut answer)?;
        must(answer == [byte], "the partner sent back another byte")
    }
}

fn echo(ends: &Ends) {
    let mut byte = [0];
    while read(&ends.from, &mut byte).is_ok() && write(&ends.to, &byte).is_ok() {}
}
