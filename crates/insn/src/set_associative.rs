//! A set-associative memory with true LRU or tree-PLRU: what caches, translation buffers and tables of targets are made
//! of.

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
    /// Which line of a set makes room.
    pub replacement: Replacement,
}

/// Which key of a full set makes room for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// The one used longest ago.
    #[default]
    Lru,
    /// The one that a binary tree of bits points to, each of which points away from the half used last.
    TreePlru,
}

impl Shape {
    /// Reads `size:ways:line`, or `size:ways:line:tree-plru`; the error says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let (sizes, replacement) = match text.strip_suffix(":tree-plru") {
            Some(sizes) => (sizes, Replacement::TreePlru),
            None => (text, Replacement::Lru),
        };
        let parts: Option<Vec<u64>> = sizes.split(':').map(|part| part.parse().ok()).collect();
        let Some(&[size, ways, line]) = parts.as_deref() else {
            return Err(format!(
                "{text} is not of the form bytes:ways:bytes-a-line[:tree-plru]"
            ));
        };
        if !line.is_power_of_two() || !(8..=4096).contains(&line) {
            return Err(format!(
                "{text}: a line has 8 to 4096 bytes, a power of two"
            ));
        }
        let shape = Self {
            size,
            ways,
            line,
            replacement,
        };
        let whole = ways
            .checked_mul(line)
            .is_some_and(|row| row > 0 && size % row == 0);
        if !whole || !shape.sets().is_power_of_two() || size > 1 << 30 {
            return Err(format!("{text}: bytes / (ways × bytes a line) must be a power of two, and bytes at most 1 GiB"));
        }
        if replacement == Replacement::TreePlru && !(ways.is_power_of_two() && ways <= MOST_LEAVES)
        {
            return Err(format!(
                "{text}: a tree has a power of two of ways, at most {MOST_LEAVES}"
            ));
        }
        Ok(shape)
    }

    /// How many sets it has.
    pub fn sets(&self) -> u64 {
        self.size / (self.ways * self.line)
    }
}

/// A set's tree is kept in one word.
const MOST_LEAVES: u64 = 64;

/// Keys (numbers of lines, or of pages), each in the set that its low bits name.
pub struct Sets {
    mask: u64,
    ways: usize,
    /// Keys + 1, a set after another; 0 is empty. By LRU the one used last is in front.
    held: Vec<u64>,
    /// By tree-PLRU, a set's bits: bit n's halves are those of bits 2n and 2n + 1, and 1 points to the upper one.
    trees: Vec<u64>,
}

impl Sets {
    /// Empty ones, with true LRU. `sets` is a power of two.
    pub fn new(sets: u64, ways: u64) -> Self {
        Self {
            mask: sets - 1,
            ways: ways as usize,
            held: alloc::vec![0; (sets * ways) as usize],
            trees: Vec::new(),
        }
    }

    /// Empty ones, with tree-PLRU. `sets` and `ways` are powers of two, `ways` at most 64.
    pub fn with_trees(sets: u64, ways: u64) -> Self {
        Self {
            trees: alloc::vec![0; sets as usize],
            ..Self::new(sets, ways)
        }
    }

    /// Uses `key`, which takes the place of the one that makes room in its set; whether it was there.
    pub fn touch(&mut self, key: u64) -> bool {
        let number = self.set(key);
        let set = &mut self.held[number * self.ways..(number + 1) * self.ways];
        if let Some(tree) = self.trees.get_mut(number) {
            return touch_by_tree(tree, set, key + 1);
        }
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
        self.trees.fill(0);
    }
}

fn touch_by_tree(tree: &mut u64, set: &mut [u64], wanted: u64) -> bool {
    let found = set.iter().position(|&held| held == wanted);
    let way = found
        .or_else(|| set.iter().position(|&held| held == 0))
        .unwrap_or_else(|| pointed_to(*tree, set.len()));
    set[way] = wanted;
    // Every bit on the way to it points to the other half.
    let mut node = set.len() + way;
    while node > 1 {
        let upper = node & 1 == 1;
        node /= 2;
        *tree = *tree & !(1 << node) | u64::from(!upper) << node;
    }
    found.is_some()
}

fn pointed_to(tree: u64, ways: usize) -> usize {
    let mut node = 1;
    while node < ways {
        node = 2 * node + (tree >> node & 1) as usize;
    }
    node - ways
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
            lines: match shape.replacement {
                Replacement::Lru => Sets::new(shape.sets(), shape.ways),
                Replacement::TreePlru => Sets::with_trees(shape.sets(), shape.ways),
            },
        }
    }

    /// Uses the line that holds `address`; whether it was there.
    pub fn touch(&mut self, address: u64) -> bool {
        self.lines.touch(address >> self.line_bits)
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.lines.clear();
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

    /// Misses in each of some rounds over `lines` lines of one set of eight ways.
    fn misses(sets: &mut Sets, lines: u64, rounds: usize) -> Vec<usize> {
        let round = |_| (0..lines).filter(|&line| !sets.touch(line)).count();
        (0..rounds).map(round).collect()
    }

    #[test]
    fn a_tree_points_away_from_what_was_used_last() {
        // Four ways, filled in order; then the first is used, so that its half is safe and of the other one the
        // half that was filled first makes room.
        let mut sets = Sets::with_trees(1, 4);
        (0..4).for_each(|key| assert!(!sets.touch(key)));
        assert!(sets.touch(0));
        assert!(!sets.touch(4));
        assert_eq!(
            [0, 1, 2, 3, 4].map(|key| sets.holds(key)),
            [true, true, false, true, true]
        );
        // True LRU would have thrown away 1.
        let mut lru = Sets::new(1, 4);
        [0, 1, 2, 3, 0, 4].iter().for_each(|&key| {
            lru.touch(key);
        });
        assert!(!lru.holds(1) && lru.holds(2));
    }

    #[test]
    fn what_fits_stays_and_twice_as_much_never_hits_by_a_tree_as_by_lru() {
        assert_eq!(misses(&mut Sets::with_trees(1, 8), 8, 3), [8, 0, 0]);
        // Eight misses in a row take each of the eight ways once.
        assert_eq!(misses(&mut Sets::with_trees(1, 8), 16, 3), [16, 16, 16]);
    }

    #[test]
    fn one_line_more_than_fits_always_misses_by_lru_and_not_by_a_tree() {
        assert_eq!(misses(&mut Sets::new(1, 4), 5, 3), [5, 5, 5]);
        // By hand: 4 takes the place of 0, then 0 that of 2, so that 1 is found again; the round after that has all five
        // elsewhere.
        assert_eq!(misses(&mut Sets::with_trees(1, 4), 5, 3), [5, 4, 5]);
    }

    #[test]
    fn with_two_ways_a_tree_is_lru() {
        let (mut tree, mut lru) = (Sets::with_trees(2, 2), Sets::new(2, 2));
        let mut key = 1u64;
        for _ in 0..1000 {
            key = key.wrapping_mul(25_214_903_917).wrapping_add(11) % (1 << 48);
            assert_eq!(tree.touch(key >> 20 & 7), lru.touch(key >> 20 & 7));
        }
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
            ("32768:8:64:fifo", "not of the form"),
            ("49152:12:64:tree-plru", "a tree has a power of two of ways"),
            ("1048576:128:64:tree-plru", "at most 64"),
        ] {
            let error = Shape::read(bad).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(
            Shape::read("49152:12:64"),
            Ok(Shape {
                size: 49152,
                ways: 12,
                line: 64,
                replacement: Replacement::Lru,
            })
        );
        let tree = Shape::read("32768:8:64:tree-plru").unwrap();
        assert_eq!(tree.replacement, Replacement::TreePlru);
    }
}
