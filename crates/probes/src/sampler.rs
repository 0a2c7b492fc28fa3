//! Files read before a row of programs, after it, and at an interval while each program runs: what was in them goes to
//! ktrial as it is, and is understood there, when all programs have ended. The guest's agent reads with it too.

use std::collections::BTreeMap;
use std::fs::File;

use nix::time::{clock_gettime, ClockId};
use wire::steps::{SampledFiles, Sampling};

use crate::whole::{whole, CHUNK};

/// So many moments are kept. One more, and every other is dropped, and the interval is twice as long from then on: what
/// is kept and what it costs has a bound, however long a program runs.
const MOST: usize = 512;

#[derive(Debug)]
struct Moment {
    at_ns: u64,
    texts: Vec<Vec<u8>>,
}

/// Reads the files of one row.
#[derive(Debug)]
pub struct Sampler {
    files: Vec<(String, File)>,
    /// So many of them, the first ones, are read at every moment; the others at the first and the last.
    often: usize,
    every_ns: u64,
    began_ns: u64,
    next_ns: Option<u64>,
    kept: Vec<Moment>,
    chunk: Vec<u8>,
    cost_ns: u64,
    readings: u64,
}

impl Sampler {
    /// The row begins: everything is read once. A file that cannot be read is left out.
    pub fn begin(order: &Sampling, now_ns: u64) -> Self {
        let mut chunk = vec![0; CHUNK];
        let mut readable = |path: &String| {
            let file = File::open(path).ok()?;
            whole(&file, &mut chunk)?;
            Some((path.clone(), file))
        };
        let mut files: Vec<_> = order.files.iter().filter_map(&mut readable).collect();
        let often = files.len();
        files.extend(order.around.iter().filter_map(&mut readable));
        let mut sampler = Self {
            files,
            often,
            every_ns: order.every_ns,
            began_ns: now_ns,
            next_ns: None,
            kept: Vec::new(),
            chunk,
            cost_ns: 0,
            readings: 0,
        };
        sampler.read(now_ns, sampler.files.len());
        sampler
    }

    /// A program starts: the first reading is due an interval from now, not before. Nobody is woken for a shorter one.
    pub fn program_starts(&mut self, now_ns: u64) {
        self.next_ns = (self.every_ns > 0).then(|| now_ns.saturating_add(self.every_ns));
    }

    /// A program has ended.
    pub fn program_ended(&mut self) {
        self.next_ns = None;
    }

    /// When the next reading is due.
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Read, if it is time. `woken_at` is this process's CPU time before it was woken for this.
    pub fn read_if_due(&mut self, now_ns: u64, woken_at: u64) {
        if self.next_ns.is_none_or(|next| next > now_ns) {
            return;
        }
        self.read(now_ns, self.often);
        self.readings += 1;
        if self.kept.len() > MOST {
            self.thin();
        }
        // Moments that were missed are not made up for.
        self.next_ns = Some(now_ns.saturating_add(self.every_ns));
        self.cost_ns += own_cpu_ns().saturating_sub(woken_at);
    }

    /// The row has ended: everything is read once more.
    pub fn end(mut self, now_ns: u64) -> SampledFiles {
        self.read(now_ns, self.files.len());
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (place, (path, _)) in self.files.iter().enumerate() {
            let text = |moment: &Moment| {
                let bytes = moment.texts.get(place).map_or(&[][..], Vec::as_slice);
                String::from_utf8_lossy(bytes).into_owned()
            };
            texts.insert(path.clone(), self.kept.iter().map(text).collect());
        }
        SampledFiles {
            every_ns: self.every_ns,
            cost_ns: self.cost_ns,
            readings: self.readings,
            at_ns: self.kept.iter().map(|moment| moment.at_ns).collect(),
            texts,
        }
    }

    fn read(&mut self, now_ns: u64, files: usize) {
        let chunk = &mut self.chunk;
        let texts = self.files[..files]
            .iter()
            .map(|(_, file)| whole(file, chunk).unwrap_or_default())
            .collect();
        let at_ns = now_ns.saturating_sub(self.began_ns);
        self.kept.push(Moment { at_ns, texts });
    }

    fn thin(&mut self) {
        let mut place = 0;
        self.kept.retain(|_| {
            place += 1;
            place % 2 == 1
        });
        self.every_ns = self.every_ns.saturating_mul(2);
    }
}

/// CPU time of this process, which has one thread.
pub fn own_cpu_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(every_ns: u64) -> Sampling {
        Sampling {
            files: vec!["/proc/uptime".into(), "/nowhere".into()],
            around: vec!["/proc/stat".into(), "/nowhere/else".into()],
            every_ns,
        }
    }

    #[test]
    fn a_program_shorter_than_the_interval_is_read_before_and_after_only() {
        let mut sampler = Sampler::begin(&order(100), 1000);
        sampler.program_starts(1010);
        assert_eq!(sampler.next_ns(), Some(1110));
        sampler.read_if_due(1109, 0);
        sampler.program_ended();
        assert_eq!(sampler.next_ns(), None);
        let sampled = sampler.end(1200);
        assert_eq!(sampled.at_ns, [0, 200]);
        assert_eq!((sampled.readings, sampled.cost_ns), (0, 0));
        assert_eq!(
            sampled.texts.keys().collect::<Vec<_>>(),
            ["/proc/stat", "/proc/uptime"]
        );
    }

    #[test]
    fn what_takes_long_is_read_before_and_after_only() {
        let mut sampler = Sampler::begin(&order(100), 0);
        sampler.program_starts(0);
        sampler.read_if_due(100, 0);
        let sampled = sampler.end(200);
        let [before, between, after] = &sampled.texts["/proc/stat"][..] else {
            panic!("three moments");
        };
        assert!(before.contains("ctxt") && after.contains("ctxt"));
        assert_eq!(between, "");
        assert!(sampled.texts["/proc/uptime"]
            .iter()
            .all(|text| !text.is_empty()));
    }

    #[test]
    fn without_an_interval_nothing_is_ever_due() {
        let mut sampler = Sampler::begin(&order(0), 0);
        sampler.program_starts(5);
        assert_eq!(sampler.next_ns(), None);
    }

    #[test]
    fn a_long_program_has_ever_fewer_readings_a_second() {
        let mut sampler = Sampler::begin(&order(10), 0);
        sampler.program_starts(0);
        let mut now = 0;
        for _ in 0..4 * MOST {
            now = sampler.next_ns().unwrap();
            sampler.read_if_due(now, own_cpu_ns());
        }
        let sampled = sampler.end(now + 1);
        assert!(sampled.at_ns.len() <= MOST + 1);
        assert!(sampled.every_ns > 10);
        assert_eq!(sampled.readings, 4 * MOST as u64);
        assert!(sampled.cost_ns > 0);
        assert_eq!(sampled.at_ns[0], 0);
        assert!(sampled.at_ns.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
