//! Files of counters around rows of programs: read as bytes, and understood when all programs have ended. What is done
//! between two programs takes from the second one's share of its CPU, and of its caches.

use std::fs::File;
use std::rc::Rc;

use probes::counters::{Snapshot, VMSTAT};
use probes::whole::{whole, CHUNK};

/// The content of some files at one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment(Rc<Vec<(String, Vec<u8>)>>);

impl Moment {
    /// The counters in it.
    pub fn counters(&self) -> Snapshot {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Snapshot::of(
            self.0
                .iter()
                .map(|(path, bytes)| (path.clone(), text(bytes))),
        )
    }
}

/// Files that stay open from one run to the next, and what was in them last.
#[derive(Debug, Default)]
pub struct Watched {
    paths: Vec<String>,
    files: Vec<(String, File)>,
    last: Moment,
    chunk: Vec<u8>,
}

impl Watched {
    /// Before a row: what the files said after the one before it, where those are the same files. /proc/vmstat is
    /// always among them: it tells of processes that were killed for want of memory.
    pub fn before(&mut self, paths: &[String]) -> Moment {
        if self.files.is_empty() || self.paths != paths {
            let open = |path: &str| Some((path.to_owned(), File::open(path).ok()?));
            let others = paths
                .iter()
                .map(String::as_str)
                .filter(|path| *path != VMSTAT);
            self.files = others.chain([VMSTAT]).filter_map(open).collect();
            self.paths = paths.to_vec();
            self.last = self.read();
        }
        self.last.clone()
    }

    /// After a row.
    pub fn after(&mut self) -> Moment {
        self.last = self.read();
        self.last.clone()
    }

    /// A file that cannot be read is left out.
    fn read(&mut self) -> Moment {
        // Made once: fresh pages would cost more than the reading.
        self.chunk.resize(CHUNK, 0);
        let mut content = Vec::with_capacity(self.files.len());
        for (path, file) in &self.files {
            if let Some(bytes) = whole(file, &mut self.chunk) {
                content.push((path.clone(), bytes));
            }
        }
        Moment(Rc::new(content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_program_left_is_what_the_next_one_finds() {
        let paths = [String::from("/proc/vmstat"), "/nowhere".into()];
        let mut watched = Watched::default();
        let first = watched.before(&paths);
        let after = watched.after();
        assert_eq!(*after.0, *watched.before(&paths).0);
        assert_eq!(first.0.len(), 1);
        let rises = after.counters().since(&first.counters());
        assert_eq!(rises.keys().collect::<Vec<_>>(), ["/proc/vmstat"]);
    }
}
