//! Which pages the guest has written to, by the words of /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst).

use core::ops::Range;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// Of a file, or shared: of a private mapping, a page that nobody has written to.
const OF_FILE: u64 = 1 << 61;

/// Whether the page is the process's own copy.
pub fn is_own(word: u64) -> bool {
    word & (PRESENT | SWAPPED) != 0 && word & OF_FILE == 0
}

/// The runs of pages that are the process's own copies, by number from the first word on.
pub fn own(words: &[u64]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut from = 0;
    core::iter::from_fn(move || {
        let start = from + words[from..].iter().position(|&word| is_own(word))?;
        let length = words[start..].iter().take_while(|&&word| is_own(word));
        from = start + length.count();
        Some(start..from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: u64 = PRESENT | OF_FILE | 77;
    const WRITTEN: u64 = PRESENT | 78;

    #[test]
    fn a_page_is_its_own_copy_where_it_is_there_or_swapped_and_not_the_files() {
        for (word, expected) in [
            (0, false),
            (CLEAN, false),
            (WRITTEN, true),
            (SWAPPED | 5, true),
            (SWAPPED | OF_FILE, false),
        ] {
            assert_eq!(is_own(word), expected, "{word:#x}");
        }
    }

    #[test]
    fn runs_are_those_of_neighbours() {
        let words = [WRITTEN, WRITTEN, 0, CLEAN, SWAPPED, CLEAN, WRITTEN];
        assert_eq!(own(&words).collect::<Vec<_>>(), [0..2, 4..5, 6..7]);
        assert_eq!(own(&[CLEAN, 0]).count(), 0);
        assert_eq!(own(&[]).count(), 0);
    }
}
