//! Files of counters: /proc/vmstat, /proc/stat and their like, read before and after a run.

use std::collections::BTreeMap;

use wire::steps::Rises;

/// The file with the memory management's events.
pub const VMSTAT: &str = "/proc/vmstat";

type Counters = BTreeMap<String, Vec<f64>>;

/// Files of counters as they were at one moment; a file that is not there is not in it.
#[derive(Debug)]
pub struct Snapshot(BTreeMap<String, Counters>);

impl Snapshot {
    /// From files that were read already: path and text.
    pub fn of(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let parsed = texts.into_iter().map(|(path, text)| (path, parse(&text)));
        Self(parsed.collect())
    }

    /// Processes that the kernel has killed because memory ran out (/proc/vmstat, since 4.13).
    pub fn oom_kills(&self) -> u64 {
        let counters = self.0.get(VMSTAT);
        counters
            .and_then(|counters| Some(*counters.get("oom_kill")?.first()? as u64))
            .unwrap_or(0)
    }

    /// By how much they rose between `earlier` and this: file → first word → a rise for each number.
    pub fn since(&self, earlier: &Self) -> BTreeMap<String, Rises> {
        let nothing = Counters::new();
        self.0
            .iter()
            .map(|(path, now)| {
                (
                    path.clone(),
                    rises(earlier.0.get(path).unwrap_or(&nothing), now),
                )
            })
            .collect()
    }
}

/// First word → the numbers that follow it. A line of one number alone (a sysfs counter) has the empty word; words
/// that are no numbers are passed over; lines with the same first word are added up.
fn parse(text: &str) -> Counters {
    let mut counters = Counters::new();
    for line in text.lines() {
        let (word, numbers) = parse_line(line);
        if !numbers.is_empty() {
            add(counters.entry(word).or_default(), &numbers);
        }
    }
    counters
}

fn parse_line(line: &str) -> (String, Vec<f64>) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (first, rest) = match words[..] {
        [only] if number(only).is_some() => ("", &words[..]),
        [first, ..] => (first.strip_suffix(':').unwrap_or(first), &words[1..]),
        [] => ("", &words[..]),
    };
    (
        first.into(),
        rest.iter().filter_map(|word| number(word)).collect(),
    )
}

/// Rust would take `nan` and `inf` for numbers; JSON has neither.
fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| number.is_finite())
}

fn add(sums: &mut Vec<f64>, numbers: &[f64]) {
    sums.resize(sums.len().max(numbers.len()), 0.0);
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum += number;
    }
}

/// Lines without change are left out; a number that was not there before was zero.
fn rises(before: &Counters, after: &Counters) -> Rises {
    let rise = |(word, now): (&String, &Vec<f64>)| {
        let then = before.get(word).map_or(&[][..], Vec::as_slice);
        let earlier = then.iter().copied().chain(std::iter::repeat(0.0));
        let differences: Vec<f64> = now
            .iter()
            .zip(earlier)
            .map(|(now, then)| now - then)
            .collect();
        differences
            .iter()
            .any(|&difference| difference != 0.0)
            .then(|| (word.clone(), differences))
    };
    after.iter().filter_map(rise).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(paths: &[String]) -> Snapshot {
        let text = |path: &String| Some((path.clone(), fs::read_to_string(path).ok()?));
        Snapshot::of(paths.iter().filter_map(text))
    }

    fn between(before: &str, after: &str) -> Vec<(String, Vec<f64>)> {
        rises(&parse(before), &parse(after)).into_iter().collect()
    }

    #[test]
    fn only_lines_that_changed_are_told() {
        let rose = between("pgfault 10\npgmajfault 3\n", "pgfault 25\npgmajfault 3\n");
        assert_eq!(rose, [("pgfault".into(), vec![15.0])]);
    }

    #[test]
    fn a_line_of_several_numbers_keeps_their_places() {
        let rose = between("cpu  10 0 5 100\nctxt 7\n", "cpu  12 0 5 90\nctxt 7\n");
        assert_eq!(rose, [("cpu".into(), vec![2.0, 0.0, 0.0, -10.0])]);
    }

    #[test]
    fn a_colon_after_the_first_word_is_dropped_and_units_are_passed_over() {
        assert_eq!(
            between("Dirty:   8 kB", "Dirty:  12 kB"),
            [("Dirty".into(), vec![4.0])]
        );
        assert_eq!(
            between("Tcp: In Out\nTcp: 1 2", "Tcp: In Out\nTcp: 1 5"),
            [("Tcp".into(), vec![0.0, 3.0])]
        );
    }

    #[test]
    fn a_line_that_is_new_rose_from_zero() {
        assert_eq!(between("a 1", "a 1\nb 4 5"), [("b".into(), vec![4.0, 5.0])]);
        assert_eq!(between("a 1", "a 1 6"), [("a".into(), vec![0.0, 6.0])]);
    }

    #[test]
    fn a_file_of_one_number_has_the_empty_word() {
        assert_eq!(between("41\n", "43\n"), [(String::new(), vec![2.0])]);
    }

    #[test]
    fn lines_with_the_same_first_word_are_added_up() {
        assert_eq!(
            between("domain0 1 1\ndomain0 2 2", "domain0 1 5\ndomain0 3 2"),
            [("domain0".into(), vec![1.0, 4.0])]
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_left_out() {
        let there =
            std::env::temp_dir().join(format!("ktrial-agent-counters-{}", std::process::id()));
        fs::write(&there, "a 1").unwrap();
        let paths = [
            there.to_string_lossy().into_owned(),
            "/nowhere/at/all".into(),
        ];
        let before = read(&paths);
        fs::write(&there, "a 3").unwrap();
        let rose = read(&paths).since(&before);
        fs::remove_file(&there).unwrap();
        assert_eq!(
            rose,
            BTreeMap::from([(paths[0].clone(), Rises::from([("a".into(), vec![2.0])]))])
        );
    }
}
