//! Workers of a file server, each with clients of its own.

use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use crate::arguments::{Arguments, Workload};
use crate::connections::connection;
use crate::crew::{Crew, Task};
use crate::failure::{must, succeeded, Failure};
use crate::file_set::{length, FileSet, Popularity};
use crate::files::{close, close_all, open, read, write, Scratch};
use crate::partners::{Companion, Ends};
use crate::processes;
use crate::workload::{number, DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "file-server1",
    summary: "workers of a file server over loopback, all with the same files",
    does: "A worker waits for a request of one of its clients (poll), reads it, opens the file, sends it (sendfile) \
           and closes it. A client asks for a file over TCP and 127.0.0.1, the popular ones more often (Zipf's law), \
           of 4 KiB (eleven of sixteen), 32 KiB (four) or 256 KiB (one), checks every page that it gets, and asks \
           for the next. All workers have the same 96 files, which are in the page cache. Where tasks are pinned the \
           clients are on the worker's CPU.",
    system_calls: &["poll", "read", "open", "sendfile", "close", "write (client)", "read (client)"],
    metric: "request",
    also: &[],
    parameters: &[number("clients", "clients of each worker", 2, 1, 64), DIRECTORY],
    kinds: EITHER,
    source: "ktrial's file-server, with a worker for each task",
    operations: 40,
    run,
};

const PAGE: usize = 4096;

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    let files = &FileSet::new(&scratch)?;
    let clients = arguments.size("clients");
    crew.measure(|task| {
        let mut worker = Worker::new(task, clients)?;
        Ok(move || worker.serve(files))
    })?;
    Ok(())
}

struct Worker {
    // The connections first: with them gone, clients come to their end.
    connections: Vec<Ends>,
    _clients: Vec<Companion>,
    polled: Vec<libc::pollfd>,
    next: usize,
}

impl Worker {
    fn new(task: &Task, clients: usize) -> Result<Self, Failure> {
        let mut connections = Vec::with_capacity(clients);
        let mut started = Vec::with_capacity(clients);
        for client in 0..clients {
            let (ours, theirs) = connection()?;
            let (thread, number) = (task.thread, task.index * clients + client);
            let copies: Vec<i32> = connections.iter().chain([&ours]).flat_map(descriptors).collect();
            started.push(Companion::start(thread, move || {
                if !thread {
                    close_all(&copies);
                }
                ask(&theirs, number).unwrap_or_else(|failure| processes::end(&failure));
            })?);
            connections.push(ours);
        }
        let polled = |ends: &Ends| libc::pollfd { fd: ends.from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let polled = connections.iter().map(polled).collect();
        Ok(Self { connections, _clients: started, polled, next: 0 })
    }

    /// The next request, of a client that waits.
    fn serve(&mut self, files: &FileSet) -> Result<(), Failure> {
        let client = self.waiting()?;
        let mut name = [0];
        read(&self.connections[client].from, &mut name)?;
        let file = open(files.path(name[0])?, libc::O_RDONLY)?;
        send(&self.connections[client].to, &file, length(usize::from(name[0])))?;
        close(file)
    }

    /// By turns: of several that wait, the one after who was last.
    fn waiting(&mut self) -> Result<usize, Failure> {
        let (polled, clients) = (&mut self.polled, self.connections.len());
        // SAFETY: as many structures as is told.
        succeeded(unsafe { libc::poll(polled.as_mut_ptr(), clients as libc::nfds_t, -1) }, "poll")?;
        let mut turns = (self.next..self.next + clients).map(|turn| turn % clients);
        let client = turns.find(|&client| polled[client].revents != 0);
        let client = client.ok_or_else(|| Failure::wrong("poll told of nobody"))?;
        self.next = client + 1;
        Ok(client)
    }
}

fn descriptors(ends: &Ends) -> [i32; 2] {
    [ends.from.as_raw_fd(), ends.to.as_raw_fd()]
}

fn send(to: &OwnedFd, file: &OwnedFd, length: usize) -> Result<(), Failure> {
    let mut left = length;
    while left > 0 {
        // SAFETY: no place in the file: its own is moved.
        let sent = unsafe { libc::sendfile(to.as_raw_fd(), file.as_raw_fd(), ptr::null_mut(), left) };
        match succeeded(sent, "sendfile")? {
            0 => return Err(Failure::wrong("a file is shorter than it was made")),
            sent => left -= sent as usize,
        }
    }
    Ok(())
}

/// Ask for files until the worker is gone. No memory is asked for: in a child other threads' locks stay as they were.
fn ask(ends: &Ends, client: usize) -> Result<(), Failure> {
    let mut popularity = Popularity::new(client);
    let mut buffer = [0_u8; 16 * PAGE];
    loop {
        let name = popularity.draw();
        if write(&ends.to, &[name]).is_err() || !received(ends, name, &mut buffer)? {
            return Ok(());
        }
    }
}

/// Whether the file came; it did not where the worker was done.
fn received(ends: &Ends, name: u8, buffer: &mut [u8]) -> Result<bool, Failure> {
    let mut left = length(usize::from(name));
    while left > 0 {
        let room = buffer.len().min(left);
        // SAFETY: at most the buffer's length is written into it.
        let got = unsafe { libc::read(ends.from.as_raw_fd(), buffer.as_mut_ptr().cast(), room) };
        if got <= 0 {
            return Ok(false);
        }
        let got = got as usize;
        let right = buffer[..got].iter().step_by(PAGE).all(|&byte| byte == name) && buffer[got - 1] == name;
        must(right, "a client got other bytes than the file's")?;
        left -= got;
    }
    Ok(true)
}
