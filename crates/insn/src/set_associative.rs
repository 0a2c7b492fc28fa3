//! A set-associative memory with true LRU: what caches, translation buffers and tables of targets are made of.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Size and shape of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes in all.
    pub size: u64,
    /// Lines that share a set.
    pub ways: u64,
    /// Bytes in a line.
    pub line: u64,
}

impl Shape {
    /// Reads `size:ways:line`; the error says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let parts: Vec<u64> = text
            .split(':')
            .filter_map(|part| part.parse().ok())
            .collect();
        let [size, ways, line] = parts[..] else {
            return Err(format!("{text} is not of the form bytes:ways:bytes-a-line"));
        };
        if !line.is_power_of_two() || !(8..=4096).contains(&line) {
            return Err(format!(
                "{text}: a line has 8 to 4096 bytes, a power of two"
            ));
        }
        let shape = Self { size, ways, line };
        let whole = ways
            .checked_mul(line)
            .is_some_and(|row| row > 0 && size % row == 0);
        if !whole || !shape.sets().is_power_of_two() || size > 1 << 30 {
            return Err(format!("{text}: bytes / (ways × bytes a line) must be a power of two, and bytes at most 1 GiB"));
        }
        Ok(shape)
    }

    /// How many sets it has.
    pub fn sets(&self) -> u64 {
        self.size / (self.ways * self.line)
    }
}

/// Keys (numbers of lines, or of pages), each in the set that its low bits name.
pub struct Sets {
    mask: u64,
    ways: usize,
    /// Keys + 1, a set after another, the one used last in front; 0 is empty.
    held: Vec<u64>,
}

impl Sets {
    /// Empty ones. `sets` is a power of two.
    pub fn new(sets: u64, ways: u64) -> Self {
        Self {
            mask: sets - 1,
            ways: ways as usize,
            held: alloc::vec![0; (sets * ways) as usize],
        }
    }

    /// Uses `key`, which takes the place of the one used longest ago in its set; whether it was there.
    pub fn touch(&mut self, key: u64) -> bool {
        let first = self.set(key) * self.ways;
        let set = &mut self.held[first..first + self.ways];
        let mut newer = core::mem::replace(&mut set[0], key + 1);
        if newer == key + 1 {
            return true;
        }
        // Each one that was used later moves back by one place, up to the one that is used now, or the oldest.
        for place in &mut set[1..] {
            newer = core::mem::replace(place, newer);
            if newer == key + 1 {
                return true;
            }
        }
        false
    }

    /// Whether `key` is there; nothing is used.
    pub fn holds(&self, key: u64) -> bool {
        let first = self.set(key) * self.ways;
        self.held[first..first + self.ways].contains(&(key + 1))
    }

    /// The number of the set that `key` belongs to.
    pub fn set(&self, key: u64) -> usize {
        (key & self.mask) as usize
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.held.fill(0);
    }
}

/// One cache of lines.
pub struct Cache {
    line_bits: u32,
    lines: Sets,
}

impl Cache {
    /// An empty one.
    pub fn new(shape: Shape) -> Self {
        Self {
            line_bits: shape.line.trailing_zeros(),
            lines: Sets::new(shape.sets(), shape.ways),
        }
    }

    /// Uses the line that holds `address`; whether it was there.
    pub fn touch(&mut self, address: u64) -> bool {
        self.lines.touch(address >> self.line_bits)
    }

    /// Whether the line that holds `address` is there; nothing is used.
    pub fn holds(&self, address: u64) -> bool {
        self.lines.holds(address >> self.line_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_used_longest_ago_makes_room() {
        let mut sets = Sets::new(2, 2);
        let hits = [0, 2, 0, 4, 0, 2].map(|key| sets.touch(key));
        assert_eq!(hits, [false, false, true, false, true, false]);
        assert!(sets.holds(2) && !sets.holds(4) && !sets.holds(1));
    }

    #[test]
    fn looking_is_not_using() {
        let mut sets = Sets::new(1, 2);
        sets.touch(0);
        sets.touch(1);
        assert!(sets.holds(0));
        sets.touch(2);
        assert!(!sets.holds(0));
    }

    #[test]
    fn cleared_it_holds_nothing() {
        let mut sets = Sets::new(4, 1);
        sets.touch(0);
        sets.clear();
        assert!(!sets.holds(0));
    }

    #[test]
    fn shapes_that_cannot_be() {
        for (bad, said) in [
            ("32768", "not of the form"),
            ("32768:8:48", "a power of two"),
            ("32768:0:64", "must be a power of two"),
            ("32768:7:64", "must be a power of two"),
            ("98304:8:64", "must be a power of two"),
            ("big:8:64", "not of the form"),
        ] {
            let error = Shape::read(bad).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(
            Shape::read("49152:12:64"),
            Ok(Shape {
                size: 49152,
                ways: 12,
                line: 64
            })
        );
    }
}
