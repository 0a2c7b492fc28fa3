//! Modelled cycles: what instructions, misses and mispredictions are taken to cost, added up by whose they are.
//!
//! docs/machine-model.md says what is modelled and what is not. All costs are whole thousandths of a cycle, so that two
//! runs give the same sum. Nothing overlaps but what the costs themselves leave out.

use crate::branches::Predictor;
use crate::hierarchy::{Hierarchy, Level};
use crate::kinds::Branch;
use crate::machine::{Costs, Machine};
use crate::page_tables::{walk, Memory, Root, Walk};
use crate::paging_caches::PagingCaches;
use crate::sampling::Sampling;
use crate::translation::{bits_by_address, Found, Translation};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What a function's, or a page of code's, instructions came to beside their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Thousandths of a cycle.
    pub cycles: u64,
    /// Lines of code that were not in the first level.
    pub code_misses: u64,
    /// Lines of data that were not in the first level.
    pub data_misses: u64,
    /// Lines that were not in the second level.
    pub second_misses: u64,
    /// Lines that were not in the last level.
    pub last_misses: u64,
    /// Translations that were not in the first level.
    pub translation_misses: u64,
    /// Translations for which the page tables were walked.
    pub walks: u64,
    /// Branches that were predicted wrongly.
    pub mispredictions: u64,
}

/// What a block's last instruction makes of translations and of what else is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    #[default]
    None,
    /// A page is mapped elsewhere; which one is not known.
    Page,
    /// Other page tables.
    Tables,
    /// All of them are forgotten.
    All,
    /// None of them; but where indirect branches went is forgotten.
    Targets,
    /// None of them; but the first level of data is emptied.
    Data,
}

/// What is known of a block when it is translated.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Whose it is.
    pub owner: u32,
    /// Where it starts.
    pub address: u64,
    /// Where its code is in memory; None where that is not known.
    pub physical: Option<u64>,
    /// Bytes of its code.
    pub length: u64,
    /// What the classes of its instructions cost.
    pub cost: u64,
    /// How its last instruction, which starts at `branch_at`, branches.
    pub branch: Branch,
    /// Where its last instruction starts.
    pub branch_at: u64,
    /// What its last instruction does to translations.
    pub change: Change,
    /// Its last instruction enters the kernel: what follows is no interrupt.
    pub system_call: bool,
    /// The CPU jumps to it: on an interrupt, an exception or a system call.
    pub entry: bool,
}

impl Block {
    fn end(&self) -> u64 {
        self.address.wrapping_add(self.length)
    }

    /// The last of its instructions.
    pub fn last_site(&self) -> Site {
        Site {
            owner: self.owner,
            instruction: self.branch_at,
        }
    }
}

/// An instruction that uses data.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Whose it is.
    pub owner: u32,
    /// Where it is.
    pub instruction: u64,
}

/// Where an access went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To memory, at this physical address.
    Memory(u64),
    /// To a device.
    Device,
}

const PAGE_BITS: u32 = 12;
const PAGE: u64 = 1 << PAGE_BITS;
/// Pages whose place in memory is kept, so that QEMU is not asked each time.
const PLACES: usize = 1024;
/// At most so many lines that were used last in their set are remembered: those of one page of 64-byte lines.
const RECENT: usize = 64;
/// Bytes of the longest access: QEMU does what is longer in several.
const LONGEST: u64 = 16;
const NOWHERE: u64 = u64::MAX;
/// Bits of the number of a page of 4 KiB.
const TAG_BITS: u32 = u64::BITS - PAGE_BITS;
/// So many changes of what is known of pages are told apart by the bits above; the last number stands for nowhere.
const GENERATIONS: u64 = (1 << PAGE_BITS) - 1;
/// Levels of page tables where nothing is known of them.
const FEWEST_LEVELS: usize = 4;

/// A line that was used lately.
#[derive(Clone, Copy)]
struct Recent {
    /// By its address.
    line: u64,
    /// In memory; NOWHERE where it is not modelled.
    physical: u64,
}

impl Recent {
    const NONE: Self = Self {
        line: NOWHERE,
        physical: NOWHERE,
    };
}

/// The model at work.
pub struct MachineModel {
    caches: Hierarchy,
    translation: Translation,
    paging: Option<PagingCaches>,
    tables: Box<dyn Memory>,
    /// Where page tables begin, if that is known; None: it was not asked since they changed.
    root: Option<Option<Root>>,
    predictor: Predictor,
    costs: Costs,
    line_bits: u32,
    sampling: Sampling,
    /// The block that ran last: where it led is known when the next one starts.
    before: Option<&'static Block>,
    code_page: u64,
    code_line: u64,
    /// Pages of 4 KiB (as `tag` calls them) and where each is in memory; and of which size of page each is a part.
    places: Vec<(u64, u64)>,
    sizes: Vec<(u64, u32)>,
    /// How often what was known of pages had to be forgotten.
    generation: u64,
    /// Lines, by address, that were used last in their set of the first level, and where they are in memory.
    recent: [Recent; RECENT],
    /// Those that were used last but one: a copy from one page to the same place in another uses two in turn.
    before_recent: [Recent; RECENT],
    /// Which of these have changed places since the cache was told.
    swapped: [bool; RECENT],
    recent_mask: u64,
    /// A set has room for two lines: what was used last but one is there.
    has_two: bool,
    /// Pages, by address, with their set of first-level translations; and the page that was used last in each set.
    pages: [(u64, usize); RECENT],
    last_pages: Vec<u64>,
    total: u64,
    counts: Vec<Counts>,
    /// Owners whose counts are not 0.
    charged: Vec<usize>,
    is_charged: Vec<bool>,
}

impl MachineModel {
    /// A machine that has done nothing yet; counts for owners 0 to `owners` - 1. `tables`: what can be read of the guest.
    pub fn new(machine: &Machine, owners: usize, tables: Box<dyn Memory>) -> Self {
        let data = machine.caches.data;
        let within_page = (PAGE / data.line).max(1);
        let sizes = machine.translations.data;
        Self {
            caches: Hierarchy::new(machine.caches),
            translation: Translation::new(machine.translations),
            paging: machine.paging.map(PagingCaches::new),
            tables,
            root: None,
            predictor: Predictor::new(machine.branches),
            costs: machine.costs.clone(),
            line_bits: data.line.trailing_zeros(),
            sampling: Sampling::new(machine.sample, machine.caches.ahead),
            before: None,
            code_page: NOWHERE,
            code_line: NOWHERE,
            places: alloc::vec![(NOWHERE, 0); PLACES],
            sizes: alloc::vec![(NOWHERE, 0); PLACES],
            generation: 0,
            recent: [Recent::NONE; RECENT],
            before_recent: [Recent::NONE; RECENT],
            swapped: [false; RECENT],
            has_two: data.ways > 1,
            recent_mask: within_page.min(data.sets()).min(RECENT as u64) - 1,
            pages: [(NOWHERE, 0); RECENT],
            last_pages: alloc::vec![NOWHERE; (sizes.entries / sizes.ways) as usize],
            total: 0,
            counts: alloc::vec![Counts::default(); owners],
            charged: Vec::new(),
            is_charged: alloc::vec![false; owners],
        }
    }

    /// The costs by which it adds up.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Thousandths of a cycle since the beginning, beside those of `Costs::base`.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Counts start again at 0; what was learned and kept stays.
    pub fn reset(&mut self) {
        for owner in self.charged.drain(..) {
            self.counts[owner] = Counts::default();
            self.is_charged[owner] = false;
        }
    }

    /// What an owner's instructions came to.
    pub fn counts(&self, owner: usize) -> Counts {
        self.counts[owner]
    }

    /// A block starts: the branch of the one before is settled, and its code is fetched.
    #[inline]
    pub fn block(&mut self, block: &'static Block) {
        if let Some(before) = self.before {
            self.settle(before, block);
        }
        self.before = Some(block);
        self.fetch(block);
        if block.cost > 0 {
            self.charge(block.owner as usize, block.cost);
        }
    }

    /// A block that is one repeated string instruction makes an access: the first one starts it.
    #[inline]
    pub fn string_block(&mut self, block: &'static Block) {
        if !self
            .before
            .is_some_and(|before| core::ptr::eq(before, block))
        {
            self.block(block);
        }
    }

    /// Data at `address` is used by `site`; `length` tells how many bytes, `store` whether it is written, `place` where
    /// that is.
    #[inline]
    pub fn access(
        &mut self,
        site: impl FnOnce() -> Site,
        address: u64,
        length: impl Fn() -> u64,
        store: impl FnOnce() -> bool,
        place: impl FnOnce() -> Place,
    ) {
        let (line, page) = (address >> self.line_bits, address >> PAGE_BITS);
        // QEMU is asked for the length only where the longest access would reach into a line that matters.
        let mut whole = self.ends_within(line, address, LONGEST);
        if !whole {
            whole = self.ends_within(line, address, length());
        }
        if whole && self.used_last(page) {
            let place_of_line = (line & self.recent_mask) as usize % RECENT;
            if self.recent[place_of_line].line == line || self.sampling.ignores(line) {
                return;
            }
            if self.before_recent[place_of_line].line == line {
                return self.use_again(place_of_line);
            }
        }
        self.access_slowly(site(), address, length(), store(), place);
    }

    /// Whether a page was used last in its set of translations: to use it again changes nothing.
    #[inline]
    fn used_last(&self, page: u64) -> bool {
        let (known, set) = self.pages[page as usize % RECENT];
        known == page && self.last_pages[set] == page
    }

    /// Whether an access of so many bytes, which begins in this line, uses no other line that is modelled.
    #[inline]
    fn ends_within(&self, line: u64, address: u64, length: u64) -> bool {
        let end = (address + length - 1) >> self.line_bits;
        end == line || self.sampling.ignores(end)
    }

    /// The line that was used last but one, which is in the first level, is used: the two change places, and the cache
    /// is told once something else is used there.
    #[inline]
    fn use_again(&mut self, place_of_line: usize) {
        core::mem::swap(
            &mut self.before_recent[place_of_line],
            &mut self.recent[place_of_line],
        );
        self.swapped[place_of_line] = true;
    }

    /// The cache is told of the order in which the last two were used.
    fn settle_recent(&mut self, place_of_line: usize) {
        if core::mem::take(&mut self.swapped[place_of_line]) {
            for recent in [
                self.before_recent[place_of_line],
                self.recent[place_of_line],
            ] {
                if recent.physical != NOWHERE {
                    self.caches.use_again(recent.physical);
                }
            }
        }
    }

    fn remember(&mut self, line: u64, physical: u64) {
        let place_of_line = (line & self.recent_mask) as usize;
        self.settle_recent(place_of_line);
        let before = core::mem::replace(&mut self.recent[place_of_line], Recent { line, physical });
        if before.line != line {
            self.before_recent[place_of_line] = if self.has_two { before } else { Recent::NONE };
        }
    }

    fn forget_recent(&mut self) {
        (0..RECENT).for_each(|place_of_line| self.settle_recent(place_of_line));
        self.recent.fill(Recent::NONE);
        self.before_recent.fill(Recent::NONE);
    }

    /// A repeated string instruction is done.
    pub fn string_done(&mut self, owner: usize) {
        self.charge(owner, self.costs.string);
    }

    fn access_slowly(
        &mut self,
        site: Site,
        address: u64,
        length: u64,
        store: bool,
        place: impl FnOnce() -> Place,
    ) {
        let owner = site.owner as usize;
        let last = address + length.max(1) - 1;
        if !self.used_last(address >> PAGE_BITS) {
            self.translate(owner, address);
        }
        if last >> PAGE_BITS != address >> PAGE_BITS {
            self.translate(owner, last);
        }
        let Place::Memory(physical) = self.place(address, place) else {
            return self.charge(owner, self.costs.device);
        };
        for line in address >> self.line_bits..=last >> self.line_bits {
            let within = (line << self.line_bits).max(address) - address;
            let share = if store { self.costs.stores } else { 100 };
            self.use_line(site, line, physical + within, share);
        }
    }

    /// The line with this number, at a physical address; `share` of its cost is paid.
    fn use_line(&mut self, site: Site, line: u64, physical: u64, share: u64) {
        let weight = self.sampling.weight(line);
        self.remember(line, if weight > 0 { physical } else { NOWHERE });
        if weight > 0 {
            let level = self.caches.access(site.instruction, physical);
            if level != Level::First {
                self.counts[site.owner as usize].data_misses += weight;
                self.missed(site.owner as usize, level, share, weight);
            }
        } else if let Some(next) = self.sampling.lead(physical >> self.line_bits) {
            self.caches.lead_data(next << self.line_bits);
        }
    }

    fn translate(&mut self, owner: usize, address: u64) {
        let page = address >> PAGE_BITS;
        let bits = self.page_bits(address);
        let key = self.translation.key(address, bits);
        let set = self.translation.data_set(key);
        let found = self.translation.access(key);
        self.pages[page as usize % RECENT] = (page, set);
        self.last_pages[set] = page;
        self.translated(owner, address, bits, found);
    }

    /// How many bits an address has within its page: as page tables have it, or else as the address tells.
    fn page_bits(&mut self, address: u64) -> u32 {
        let page = address >> PAGE_BITS;
        let (tag, place) = (self.tag(page), page as usize % PLACES);
        let (known, bits) = self.sizes[place];
        if known == tag {
            return bits;
        }
        let found = self.walk(address).map(|walk| walk.bits);
        let bits = found.unwrap_or_else(|| bits_by_address(address));
        self.sizes[place] = (tag, bits);
        bits
    }

    fn walk(&mut self, address: u64) -> Option<Walk> {
        let root = *self.root.get_or_insert_with(|| self.tables.root());
        walk(&*self.tables, root?, address)
    }

    /// A page as `places` and `sizes` have it: none of those of before a change.
    fn tag(&self, page: u64) -> u64 {
        page | self.generation << TAG_BITS
    }

    /// Where `address` is; QEMU is asked where it was not asked before.
    fn place(&mut self, address: u64, ask: impl FnOnce() -> Place) -> Place {
        let page = address >> PAGE_BITS;
        let tag = self.tag(page);
        let known = &mut self.places[page as usize % PLACES];
        if known.0 == tag {
            return Place::Memory(known.1 | (address & (PAGE - 1)));
        }
        let place = ask();
        if let Place::Memory(physical) = place {
            *known = (tag, physical & !(PAGE - 1));
        }
        place
    }

    #[inline]
    fn fetch(&mut self, block: &Block) {
        let ahead = block.length.max(1) - 1;
        let last = block.address + ahead;
        let pages = (block.address >> PAGE_BITS, last >> PAGE_BITS);
        if pages != (self.code_page, self.code_page) {
            self.fetch_pages(block.owner as usize, pages);
        }
        let Some(physical) = block.physical else {
            return;
        };
        let lines = (
            physical >> self.line_bits,
            (physical + ahead) >> self.line_bits,
        );
        if lines != (self.code_line, self.code_line) {
            self.fetch_lines(block.owner as usize, lines);
        }
    }

    fn fetch_pages(&mut self, owner: usize, (first, last): (u64, u64)) {
        for page in first..=last {
            if page != self.code_page {
                self.code_page = page;
                let address = page << PAGE_BITS;
                let bits = self.page_bits(address);
                let found = self.translation.fetch(self.translation.key(address, bits));
                self.translated(owner, address, bits, found);
            }
        }
    }

    fn fetch_lines(&mut self, owner: usize, (first, last): (u64, u64)) {
        for line in first..=last {
            if line != self.code_line {
                self.code_line = line;
                self.fetch_line(owner, line);
            }
        }
    }

    fn fetch_line(&mut self, owner: usize, line: u64) {
        let weight = self.sampling.weight(line);
        if weight > 0 {
            let level = self.caches.fetch(line << self.line_bits);
            if level != Level::First {
                self.counts[owner].code_misses += weight;
                self.missed(owner, level, 100, weight);
            }
        } else if let Some(next) = self.sampling.lead(line) {
            self.caches.lead_code(next << self.line_bits);
        }
    }

    fn settle(&mut self, before: &Block, next: &Block) {
        if next.entry {
            // What was on its way is done over again, or goes on after the interrupt.
            if !before.system_call {
                self.charge(next.owner as usize, self.costs.interrupt);
            }
        } else if self.mispredicted(before, next.address) {
            self.counts[before.owner as usize].mispredictions += 1;
            self.charge(before.owner as usize, self.costs.misprediction);
        }
        match before.change {
            Change::None => return,
            Change::Page => {}
            Change::Tables => self.translation.switch(),
            Change::All => self.translation.flush(),
            Change::Targets => return self.predictor.forget_targets(),
            Change::Data => {
                self.forget_recent();
                self.caches.flush_data();
                return;
            }
        }
        if let Some(paging) = &mut self.paging {
            paging.clear();
        }
        self.root = None;
        self.forget_places();
    }

    fn mispredicted(&mut self, before: &Block, next: u64) -> bool {
        if let Branch::Conditional { target } = before.branch {
            let goes_on = next == before.end();
            let settled = goes_on || next == target;
            return settled && self.predictor.conditional(before.branch_at, !goes_on);
        }
        if before.address < next && next < before.end() {
            // QEMU left the block half-way: to do an access to a device over again, or before its last instruction.
            return false;
        }
        match before.branch {
            Branch::Call | Branch::IndirectCall => self.predictor.called(before.end()),
            _ => {}
        }
        match before.branch {
            Branch::IndirectCall | Branch::IndirectJump => {
                self.predictor.indirect(before.branch_at, next)
            }
            Branch::Return => self.predictor.returned(next),
            _ => false,
        }
    }

    /// What was remembered by address is not where it was.
    fn forget_places(&mut self) {
        self.generation += 1;
        if self.generation == GENERATIONS {
            self.generation = 0;
            self.places.fill((NOWHERE, 0));
            self.sizes.fill((NOWHERE, 0));
        }
        self.forget_recent();
        self.pages.fill((NOWHERE, 0));
        self.last_pages.fill(NOWHERE);
        self.code_page = NOWHERE;
    }

    fn missed(&mut self, owner: usize, level: Level, share: u64, weight: u64) {
        let counts = &mut self.counts[owner];
        counts.second_misses += u64::from(level != Level::Second) * weight;
        counts.last_misses += u64::from(level == Level::Memory) * weight;
        let cost = self.costs.levels[level as usize - 1] * share / 100;
        self.charge(owner, cost * weight);
    }

    fn translated(&mut self, owner: usize, address: u64, bits: u32, found: Found) {
        if found == Found::First {
            return;
        }
        let counts = &mut self.counts[owner];
        counts.translation_misses += 1;
        counts.walks += u64::from(found == Found::Walked);
        self.charge(owner, self.costs.translations[found as usize - 1]);
        if found == Found::Walked {
            self.walked(owner, address, bits);
        }
    }

    /// What a walk reads: entries of page tables that no paging-structure cache has, by way of the data caches.
    fn walked(&mut self, owner: usize, address: u64, bits: u32) {
        if self.paging.is_none() {
            return;
        }
        let known = self.walk(address);
        let levels = self
            .root
            .flatten()
            .map_or(FEWEST_LEVELS, |root| root.levels);
        let Some(paging) = &mut self.paging else {
            return;
        };
        let count = paging.walk(address, bits, levels);
        self.charge(owner, self.costs.walk_level * (count as u64 - 1));
        let Some(walk) = known else { return };
        for &entry in walk.entries[..count.min(walk.count)].iter().rev() {
            let weight = self.sampling.weight(entry >> self.line_bits);
            if weight == 0 {
                continue;
            }
            let place_of_line = ((entry >> self.line_bits) & self.recent_mask) as usize;
            self.settle_recent(place_of_line);
            let level = self.caches.walk(entry);
            // What was used last in this set is another line now.
            self.recent[place_of_line] = Recent::NONE;
            self.before_recent[place_of_line] = Recent::NONE;
            if level != Level::First {
                self.counts[owner].data_misses += weight;
                self.missed(owner, level, 100, weight);
            }
        }
    }

    fn charge(&mut self, owner: usize, cost: u64) {
        self.total += cost;
        self.counts[owner].cycles += cost;
        if !core::mem::replace(&mut self.is_charged[owner], true) {
            self.charged.push(owner);
        }
    }
}

#[cfg(test)]
mod tests;
