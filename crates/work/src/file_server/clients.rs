//! The clients: one thread a connection, which asks for files and checks every page that it gets.

use std::io::Read;
use std::net::TcpStream;
use std::thread;

use super::connection::ask;
use super::files::{FileSet, Name};
use crate::clock::ClockKind;
use crate::draws::Random;
use crate::failure::Failure;
use crate::latency::Latencies;
use crate::memory::{Pages, PAGE};
use crate::stamped;

const BUFFER: usize = 64 << 10;

/// All clients.
pub struct Clients(Vec<Client>);

struct Client {
    socket: TcpStream,
    random: Random,
    buffer: Pages,
    latencies: Latencies,
}

impl Clients {
    /// One for each connection; each draws its own files.
    pub fn new(sockets: Vec<TcpStream>, seed: u64, clock: ClockKind) -> Result<Self, Failure> {
        let made = sockets.into_iter().enumerate().map(|(number, socket)| {
            Ok(Client {
                socket,
                random: Random::new(seed * 1_000_003 + number as u64),
                buffer: Pages::new(BUFFER)?,
                latencies: Latencies::new(clock)?,
            })
        });
        Ok(Self(made.collect::<Result<_, Failure>>()?))
    }

    /// Ask for `requests` files, shared out over all, and wait for the last.
    pub fn ask(
        &mut self,
        requests: usize,
        files: &FileSet,
        latencies: &mut Latencies,
    ) -> Result<(), Failure> {
        let clients = self.0.len();
        thread::scope(|scope| {
            let asking: Vec<_> = (self.0.iter_mut().enumerate())
                .map(|(number, client)| {
                    let share = requests / clients + usize::from(number < requests % clients);
                    scope.spawn(move || client.ask(share, files))
                })
                .collect();
            asking.into_iter().try_for_each(|one| {
                one.join()
                    .unwrap_or_else(|_| Err(Failure::wrong("a client panicked")))
            })
        })?;
        for client in &mut self.0 {
            latencies.add(&client.latencies)?;
            client.latencies.clear();
        }
        Ok(())
    }
}

impl Client {
    fn ask(&mut self, requests: usize, files: &FileSet) -> Result<(), Failure> {
        for _ in 0..requests {
            let name = files.draw(&mut self.random);
            let (socket, buffer) = (&self.socket, &mut self.buffer[..BUFFER]);
            self.latencies.step(|| {
                ask(socket, name)?;
                received(socket, name, buffer)
            })?;
        }
        Ok(())
    }
}

/// All pages of the file, each of them whole and in its place.
fn received(mut socket: &TcpStream, name: Name, buffer: &mut [u8]) -> Result<(), Failure> {
    let (mut checked, mut filled) = (0, 0);
    while checked < name.size() {
        let room = buffer.len().min(name.size() - checked);
        match socket.read(&mut buffer[filled..room]) {
            Ok(0) => return Err(Failure::wrong("the server is gone")),
            Ok(got) => filled += got,
            Err(error) => return Err(Failure::io("receiving", &error)),
        }
        let whole = filled / PAGE * PAGE;
        stamped::check(&buffer[..whole], name.id(), checked as u64, 0)?;
        buffer.copy_within(whole..filled, 0);
        checked += whole;
        filled -= whole;
    }
    Ok(())
}
