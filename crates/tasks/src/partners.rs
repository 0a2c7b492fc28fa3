//! A partner that answers a task: each byte that arrives goes back.

use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::{self, JoinHandle};

use crate::failure::{must, Failure};
use crate::files::{pipe, read, write};
use crate::processes::Process;

/// A thread or process that sends back what it is sent. It ends when this is dropped.
pub struct Partner {
    to: Option<OwnedFd>,
    from: OwnedFd,
    kind: Kind,
}

enum Kind {
    Thread(Option<JoinHandle<()>>),
    Process { _child: Process },
}

impl Partner {
    /// A thread of this process, or a process of its own; on the CPUs of who starts it.
    pub fn start(thread: bool) -> Result<Self, Failure> {
        let (question, to) = pipe()?;
        let (from, answer) = pipe()?;
        let kind = if thread {
            let echo = move || echo(&question, &answer);
            Kind::Thread(Some(thread::spawn(echo)))
        } else {
            let (ours, theirs) = (to.as_raw_fd(), from.as_raw_fd());
            let child = Process::start(|| {
                // SAFETY: the child's copies of the ends that the parent keeps: with them it would never see an end.
                unsafe {
                    libc::close(ours);
                    libc::close(theirs);
                }
                echo(&question, &answer);
                Ok(())
            })?;
            Kind::Process { _child: child }
        };
        Ok(Self {
            to: Some(to),
            from,
            kind,
        })
    }

    /// Send a byte, and wait until it is back.
    #[inline(always)]
    pub fn ask(&self, byte: u8) -> Result<(), Failure> {
        let mut answer = [!byte];
        if let Some(to) = &self.to {
            write(to, &[byte])?;
        }
        read(&self.from, &mut answer)?;
        must(answer == [byte], "the partner sent back another byte")
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.to = None;
        if let Kind::Thread(thread) = &mut self.kind {
            // It ends with the pipe, and has nothing to say.
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

fn echo(question: &OwnedFd, answer: &OwnedFd) {
    let mut byte = [0];
    while read(question, &mut byte).is_ok() && write(answer, &byte).is_ok() {}
}
