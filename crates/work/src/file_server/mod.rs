//! A file server over loopback and its clients: what the workload file-server is made of.

mod clients;
mod connection;
mod files;
mod methods;
mod server;

pub use clients::Clients;
pub use connection::pair;
pub use files::{FileSet, CLASSES};
pub use methods::Method;
pub use server::{serve, Taken, Told};
