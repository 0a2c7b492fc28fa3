//! Caches of which only some sets are modelled, and stand for the others.
//!
//! A page of 4 KiB has 64 lines of 64 bytes, and where caches have at least 64 sets, a line's place in its page decides
//! which sets it can be in. Lines are modelled at the page's first place and at every so-manieth one behind it. The first
//! stands for itself: no prefetcher has brought it, as none crosses pages. Each of the others stands for as many as there
//! are from one to the next. 63 is divided by that number, so that a page counts for 64 lines.

/// Lines in a page.
const LINES: usize = 64;

/// Which lines are modelled.
pub struct Sampling {
    /// By place in the page, for how many lines each stands; 0: it is not modelled.
    weights: [u8; LINES],
    /// By place in the page, how many lines ahead that one is which is modelled and would be prefetched; 0: none.
    leads: [u8; LINES],
}

impl Sampling {
    /// Whether pages can be sampled so.
    pub fn fits(every: u64) -> bool {
        every > 0 && (LINES as u64 - 1) % every == 0
    }

    /// Of every so-manieth line, where the next `ahead` ones are prefetched. 1: all lines, as they are.
    pub fn new(every: u64, ahead: u64) -> Self {
        let modelled = |place: u64| place % every == 0;
        let weight = |place: u64| match place {
            0 => 1,
            _ if modelled(place) => every as u8,
            _ => 0,
        };
        let lead = |place: u64| {
            let reach = 1..=ahead.min(LINES as u64 - 1 - place);
            let found = reach.into_iter().find(|&by| modelled(place + by));
            found.filter(|_| !modelled(place)).unwrap_or(0) as u8
        };
        Self {
            weights: core::array::from_fn(|place| weight(place as u64)),
            leads: core::array::from_fn(|place| lead(place as u64)),
        }
    }

    /// For how many lines this one (by its number) stands; 0: it is not modelled.
    #[inline]
    pub fn weight(&self, line: u64) -> u64 {
        self.weights[line as usize % LINES].into()
    }

    /// The line that would be prefetched behind this one, which is not modelled.
    #[inline]
    pub fn lead(&self, line: u64) -> Option<u64> {
        let by = self.leads[line as usize % LINES];
        (by > 0).then(|| line + u64::from(by))
    }

    /// By place in the page, a bit: set where a line neither is modelled nor brings one that is.
    pub fn ignored(&self) -> u64 {
        (0..LINES)
            .filter(|&place| self.weights[place] | self.leads[place] == 0)
            .map(|place| 1 << place)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_counts_for_its_lines() {
        for every in [1, 3, 7, 9, 21, 63] {
            assert!(Sampling::fits(every));
            let sampling = Sampling::new(every, 1);
            let all: u64 = (128..192).map(|line| sampling.weight(line)).sum();
            assert_eq!(all, 64, "{every}");
        }
        assert!(![0, 2, 8, 64].into_iter().any(Sampling::fits));
    }

    #[test]
    fn what_is_before_a_modelled_line_leads_to_it() {
        let sampling = Sampling::new(9, 2);
        let leads: Vec<_> = (0..64)
            .filter_map(|line| Some((line, sampling.lead(line)?)))
            .collect();
        assert_eq!(leads[..4], [(7, 9), (8, 9), (16, 18), (17, 18)]);
        assert_eq!(leads[leads.len() - 1], (62, 63));
        assert_eq!(sampling.ignored() & 0x3ff, 0b00_0111_1110);
    }

    #[test]
    fn where_all_are_modelled_nothing_is_left_out() {
        let sampling = Sampling::new(1, 2);
        assert!((0..64).all(|line| sampling.weight(line) == 1));
        assert!((0..64).all(|line| sampling.lead(line).is_none()));
        assert_eq!(sampling.ignored(), 0);
    }
}
