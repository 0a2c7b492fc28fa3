//! What was used last, by address: to use it once more changes nothing in the model, and is told quickly.
//!
//! Pages are those of 4 KiB that were used last, or last but one, by way of their set of the first level of translations;
//! both may be parts of one page of 2 MiB. Lines are those that were used last, and last but one, in their set of the first
//! level of data: a copy from one page to another uses two in turn, which may be of one set.

use alloc::vec::Vec;

/// No page and no line.
pub const NOWHERE: u64 = u64::MAX;
/// Bits of an address within a page of 4 KiB.
pub const PAGE_BITS: u32 = 12;
/// So many pages are known at a time; each has a bit in a word.
const PAGES: usize = u64::BITS as usize;
/// At most so many lines that were used last in their set are known: those of one page of 64-byte lines.
const LINES: usize = 64;

/// Which lines can be known, and which need not be.
#[derive(Clone, Copy)]
pub struct Lines {
    /// Bits of an address within a line.
    pub bits: u32,
    /// Sets of the first level that its place in the page leads to, a power of two.
    pub sets: u64,
    /// A set has room for two lines: what was used last but one is there.
    pub has_two: bool,
    /// By place among 64 lines: those of which no use matters.
    pub ignored: u64,
}

/// A line that was used lately.
#[derive(Clone, Copy)]
struct Line {
    /// By its address.
    line: u64,
    /// In memory; NOWHERE where it is not modelled.
    physical: u64,
}

impl Line {
    const NONE: Self = Self {
        line: NOWHERE,
        physical: NOWHERE,
    };
}

/// What was used last.
pub struct Recent {
    /// Pages of 4 KiB, each in the place that its lowest bits name.
    pages: [u64; PAGES],
    /// Those of them whose translation was used last in its set; that of the others was used last but one.
    last: u64,
    /// Those of them that are known to be no device's.
    in_memory: u64,
    /// Lines by address, each in the place that its lowest bits name.
    lines: [u64; LINES],
    shape: Lines,
    mask: u64,
    /// Bits of an address within a line.
    within: u64,
    /// Where the lines are in memory, as in `Line`.
    physical: [u64; LINES],
    /// The lines that were used last but one.
    before: [Line; LINES],
    /// Which of these have changed places since the cache was told.
    swapped: [bool; LINES],
    /// Sets of translations.
    translations: Vec<Translations>,
    has_two_translations: bool,
    /// By place in `pages`, the set that its page belongs to.
    sets: [u32; PAGES],
}

/// A translation that was used lately.
#[derive(Clone, Copy)]
struct Translation {
    key: u64,
    /// The page of 4 KiB that was used.
    page: u64,
    /// Its place in `pages`, as a bit; 0 where another page has taken that.
    parts: u64,
}

impl Translation {
    const NONE: Self = Self {
        key: NOWHERE,
        page: NOWHERE,
        parts: 0,
    };
}

/// Those of one set.
#[derive(Clone, Copy)]
struct Translations {
    last: Translation,
    /// The one used last but one.
    before: Translation,
    /// They have changed places since the buffer was told.
    swapped: bool,
}

impl Translations {
    const NONE: Self = Self {
        last: Translation::NONE,
        before: Translation::NONE,
        swapped: false,
    };

    /// What the buffer has not been told yet, in order.
    fn settle(&mut self, tell: impl FnMut(u64)) {
        if core::mem::take(&mut self.swapped) {
            [self.before.key, self.last.key].into_iter().for_each(tell);
        }
    }
}

impl Recent {
    /// Nothing was used. `translations`: sets and ways of the first level of translations of data.
    pub fn new(shape: Lines, translations: (usize, u64)) -> Self {
        Self {
            pages: [NOWHERE; PAGES],
            last: 0,
            in_memory: 0,
            lines: [NOWHERE; LINES],
            shape,
            mask: shape.sets.min(LINES as u64) - 1,
            within: (1 << shape.bits) - 1,
            physical: [NOWHERE; LINES],
            before: [Line::NONE; LINES],
            swapped: [false; LINES],
            translations: alloc::vec![Translations::NONE; translations.0],
            has_two_translations: translations.1 > 1,
            sets: [0; PAGES],
        }
    }

    /// Whether an access that begins here, of at most so many bytes, uses only what was used last: it changes nothing.
    #[inline(always)]
    pub fn covers(&self, address: u64, longest: u64) -> bool {
        let line = address >> self.shape.bits;
        self.has_page(address)
            && (address & self.within) + longest <= self.within + 1
            && (self.ignores(line) || self.lines[self.place(line)] == line)
    }

    /// The same of an access of so many bytes; where it uses the line or the translation that was used last but one in its
    /// set, the two change places, and the cache is told once something else is used there.
    #[inline]
    pub fn covers_or_swaps(&mut self, address: u64, length: u64) -> bool {
        let (line, end) = (
            address >> self.shape.bits,
            (address + length - 1) >> self.shape.bits,
        );
        let place = self.place(line);
        let is_ignored = self.ignores(line);
        let is_last = is_ignored || self.lines[place] == line;
        if (end != line && !self.ignores(end)) || !(is_last || self.before[place].line == line) {
            return false;
        }
        if !self.has_page(address) {
            let in_memory = if is_last {
                self.physical[place]
            } else {
                self.before[place].physical
            };
            // What is not modelled may bring what is, and a device may be there.
            if !(is_ignored || in_memory != NOWHERE) || !self.swap_translations(address) {
                return false;
            }
        }
        if !is_last {
            let before = &mut self.before[place];
            core::mem::swap(&mut before.line, &mut self.lines[place]);
            core::mem::swap(&mut before.physical, &mut self.physical[place]);
            self.swapped[place] = true;
        }
        true
    }

    /// Whether the translation of the page that holds an address was used last in its set.
    #[inline(always)]
    pub fn has_page(&self, address: u64) -> bool {
        let page = address >> PAGE_BITS;
        let place = page as usize % PAGES;
        self.pages[place] == page && self.last >> place & 1 == 1
    }

    /// Where the translation of a page in memory was used last but one in its set, it changes places with the last.
    fn swap_translations(&mut self, address: u64) -> bool {
        let page = address >> PAGE_BITS;
        let place = page as usize % PAGES;
        if self.pages[place] != page || self.in_memory >> place & 1 == 0 {
            return false;
        }
        let set = &mut self.translations[self.sets[place] as usize];
        core::mem::swap(&mut set.last, &mut set.before);
        set.swapped = true;
        self.last = self.last & !set.before.parts | set.last.parts;
        true
    }

    /// The page that holds an address, which was used, is no device's.
    pub fn is_memory(&mut self, address: u64) {
        let page = address >> PAGE_BITS;
        let place = page as usize % PAGES;
        self.in_memory |= u64::from(self.pages[place] == page) << place;
    }

    #[inline(always)]
    fn ignores(&self, line: u64) -> bool {
        self.shape.ignored >> (line % LINES as u64) & 1 == 1
    }

    #[inline(always)]
    fn place(&self, line: u64) -> usize {
        (line & self.mask) as usize % LINES
    }

    /// The page that holds an address is about to be used: its translation is `key`, of this set. `tell`: what the buffer
    /// has not been told yet, in order.
    pub fn use_page(&mut self, address: u64, key: u64, number: usize, tell: impl FnMut(u64)) {
        let page = address >> PAGE_BITS;
        let place = page as usize % PAGES;
        let set = &mut self.translations[number];
        set.settle(tell);
        if set.last.page != page {
            let mut gone = set.before.parts;
            if !self.has_two_translations {
                gone |= core::mem::replace(&mut set.last, Translation::NONE).parts;
            }
            let again = set.before.page == page;
            if again {
                gone = 0;
            }
            let parts = if again { set.before.parts } else { 0 };
            set.before = core::mem::replace(&mut set.last, Translation { key, page, parts });
            self.last = self.last & !set.before.parts | parts;
            while gone != 0 {
                self.pages[gone.trailing_zeros() as usize] = NOWHERE;
                gone &= gone - 1;
            }
        }
        let before = &mut self.translations[self.sets[place] as usize];
        before.last.parts &= !(1 << place);
        before.before.parts &= !(1 << place);
        self.translations[number].last.parts |= 1 << place;
        self.sets[place] = number as u32;
        self.pages[place] = page;
        self.last |= 1 << place;
        self.in_memory &= !(1 << place);
    }

    /// A line, by its number, is used, which is in memory at `physical`, or is not modelled (NOWHERE). `tell`: what the
    /// cache has not been told yet, in order.
    pub fn use_line(&mut self, line: u64, physical: u64, tell: impl FnMut(u64)) {
        let place = self.place(line);
        self.settle(place, tell);
        let before = Line {
            line: core::mem::replace(&mut self.lines[place], line),
            physical: core::mem::replace(&mut self.physical[place], physical),
        };
        if before.line != line {
            self.before[place] = if self.shape.has_two {
                before
            } else {
                Line::NONE
            };
        }
    }

    /// The cache is told of the order in which the last two were used.
    fn settle(&mut self, place: usize, tell: impl FnMut(u64)) {
        if core::mem::take(&mut self.swapped[place]) {
            [self.before[place].physical, self.physical[place]]
                .into_iter()
                .filter(|&physical| physical != NOWHERE)
                .for_each(tell);
        }
    }

    /// Another line is about to be used in the set of this one; `tell` as above.
    pub fn forget_set(&mut self, line: u64, tell: impl FnMut(u64)) {
        let place = self.place(line);
        self.settle(place, tell);
        (self.lines[place], self.physical[place]) = (NOWHERE, NOWHERE);
        self.before[place] = Line::NONE;
    }

    /// No line is known; `tell` as above.
    pub fn forget_lines(&mut self, mut tell: impl FnMut(u64)) {
        (0..LINES).for_each(|place| self.settle(place, &mut tell));
        self.lines.fill(NOWHERE);
        self.physical.fill(NOWHERE);
        self.before.fill(Line::NONE);
    }

    /// No page is known; `tell` as above.
    pub fn forget_pages(&mut self, mut tell: impl FnMut(u64)) {
        for set in &mut self.translations {
            set.settle(&mut tell);
            *set = Translations::NONE;
        }
        self.pages.fill(NOWHERE);
    }
}

#[cfg(test)]
mod tests;
