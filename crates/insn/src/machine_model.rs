//! Modelled cycles: what instructions, misses and mispredictions are taken to cost, added up by whose they are.
//!
//! docs/machine-model.md says what is modelled and what is not. All costs are whole thousandths of a cycle, so that two
//! runs give the same sum. Nothing overlaps but what the costs themselves leave out.

use crate::block::{Change, Ending, KeptBlock, Site};
use crate::branches::Predictor;
use crate::hierarchy::{Hierarchy, Level};
use crate::machine::{Costs, Machine};
use crate::page_tables::{walk, Memory, Root, Walk};
use crate::paging_caches::PagingCaches;
use crate::recent::{Lines, Recent, NOWHERE, PAGE_BITS};
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

/// Where an access went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To memory, at this physical address.
    Memory(u64),
    /// To a device.
    Device,
}

const PAGE: u64 = 1 << PAGE_BITS;
/// Pages whose place in memory is kept, so that QEMU is not asked each time.
const PLACES: usize = 1024;
const NO_PAGES: (u64, u64) = (NOWHERE, 0);
/// Bits of the number of a page of 4 KiB.
const TAG_BITS: u32 = u64::BITS - PAGE_BITS;
/// So many changes of what is known of pages are told apart by the bits above; the last number stands for nowhere.
const GENERATIONS: u64 = (1 << PAGE_BITS) - 1;
/// Levels of page tables where nothing is known of them.
const FEWEST_LEVELS: usize = 4;

/// The model at work.
pub struct MachineModel {
    /// What was used last, of data.
    recent: Recent,
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
    /// Lines that `sampling` leaves out, as `Lines` has them.
    ignored: u64,
    /// The block that ran last: where it led is known when the next one starts.
    before: Option<&'static KeptBlock>,
    /// Pages of 4 KiB, from the first to the last, that are parts of the page of which code was fetched last.
    code_pages: (u64, u64),
    code_line: u64,
    /// Pages of 4 KiB (as `tag` calls them) and where each is in memory; and of which size of page each is a part.
    places: Vec<(u64, u64)>,
    sizes: Vec<(u64, u32)>,
    /// How often what was known of pages had to be forgotten.
    generation: u64,
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
        let sampling = Sampling::new(machine.sample, machine.caches.ahead);
        let lines = Lines {
            bits: data.line.trailing_zeros(),
            sets: within_page.min(data.sets()),
            has_two: data.ways > 1,
            ignored: sampling.ignored(),
        };
        Self {
            recent: Recent::new(lines, ((sizes.entries / sizes.ways) as usize, sizes.ways)),
            caches: Hierarchy::new(machine.caches),
            translation: Translation::new(machine.translations),
            paging: machine.paging.map(PagingCaches::new),
            tables,
            root: None,
            predictor: Predictor::new(machine.branches),
            costs: machine.costs.clone(),
            line_bits: lines.bits,
            ignored: lines.ignored,
            sampling,
            before: None,
            code_pages: NO_PAGES,
            code_line: NOWHERE,
            places: alloc::vec![(NOWHERE, 0); PLACES],
            sizes: alloc::vec![(NOWHERE, 0); PLACES],
            generation: 0,
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
    pub fn block(&mut self, block: &'static KeptBlock) {
        if let Some(before) = self.before.replace(block) {
            self.settle(before, block);
        }
        self.fetch(block);
        if block.cost > 0 {
            self.charge(block.owner(), block.cost);
        }
    }

    /// A block that is one repeated string instruction makes an access: the first one starts it.
    #[inline]
    pub fn string_block(&mut self, block: &'static KeptBlock) {
        if !self.goes_on(block) {
            self.block(block);
        }
    }

    /// Whether an access of at most so many bytes that begins at `address` changes nothing: it need not be told of.
    #[inline(always)]
    pub fn ignores(&self, address: u64, longest: u64) -> bool {
        self.recent.covers(address, longest)
    }

    /// The same of an access of so many bytes, also where it uses what was used last but one, of which note is taken.
    #[inline(always)]
    pub fn goes_in_turn(&mut self, address: u64, length: u64) -> bool {
        self.recent.covers_or_swaps(address, length)
    }

    /// Whether a block that is one repeated string instruction has started, and goes on.
    #[inline(always)]
    pub fn goes_on(&self, block: &'static KeptBlock) -> bool {
        self.before
            .is_some_and(|before| core::ptr::eq(before, block))
    }

    /// Data at `address` is used by `site`; `length` tells how many bytes, `store` whether it is written, `place` where
    /// that is.
    pub fn access(
        &mut self,
        site: impl FnOnce() -> Site,
        address: u64,
        length: impl FnOnce() -> u64,
        store: impl FnOnce() -> bool,
        place: impl FnOnce() -> Place,
    ) {
        let length = length();
        if !self.recent.covers_or_swaps(address, length) {
            self.access_slowly(site(), address, length, store(), place);
        }
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
        if !self.recent.has_page(address) {
            self.translate(owner, address);
        }
        if last >> PAGE_BITS != address >> PAGE_BITS {
            self.translate(owner, last);
        }
        let Place::Memory(physical) = self.place(address, place) else {
            return self.charge(owner, self.costs.device);
        };
        self.recent.is_memory(address);
        for line in address >> self.line_bits..=last >> self.line_bits {
            let within = (line << self.line_bits).max(address) - address;
            let share = if store { self.costs.stores } else { 100 };
            self.use_line(site, line, physical + within, share);
        }
    }

    /// The line with this number, at a physical address; `share` of its cost is paid.
    fn use_line(&mut self, site: Site, line: u64, physical: u64, share: u64) {
        let weight = self.sampling.weight(line);
        let modelled = if weight > 0 { physical } else { NOWHERE };
        let caches = &mut self.caches;
        self.recent
            .use_line(line, modelled, |physical| caches.use_again(physical));
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
        let bits = self.page_bits(address);
        let key = self.translation.key(address, bits);
        let set = self.translation.data_set(key);
        let translation = &mut self.translation;
        self.recent
            .use_page(address, key, set, |other| translation.use_again(other));
        let found = translation.access(key);
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
    fn fetch(&mut self, block: &KeptBlock) {
        let ahead = block.ahead();
        let last = block.address + ahead;
        let pages = (block.address >> PAGE_BITS, last >> PAGE_BITS);
        if pages.0 < self.code_pages.0 || pages.1 > self.code_pages.1 {
            self.fetch_pages(block.owner(), pages);
        }
        let Some(physical) = block.physical() else {
            return;
        };
        let (first, last) = (
            physical >> self.line_bits,
            (physical + ahead) >> self.line_bits,
        );
        let ignores = |line: u64| self.ignored >> (line % 64) & 1 == 1;
        if last - first <= 1 && ignores(first) && ignores(last) {
            self.code_line = last;
        } else if (first, last) != (self.code_line, self.code_line) {
            self.fetch_lines(block.owner(), (first, last));
        }
    }

    #[inline(never)]
    fn fetch_pages(&mut self, owner: usize, (first, last): (u64, u64)) {
        for page in first..=last {
            if page < self.code_pages.0 || page > self.code_pages.1 {
                let address = page << PAGE_BITS;
                let bits = self.page_bits(address);
                let within = (1 << (bits - PAGE_BITS)) - 1;
                self.code_pages = (page & !within, page | within);
                let found = self.translation.fetch(self.translation.key(address, bits));
                self.translated(owner, address, bits, found);
            }
        }
    }

    #[inline(never)]
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

    #[inline]
    fn settle(&mut self, before: &KeptBlock, next: &KeptBlock) {
        if next.is_entry() {
            self.entered(before, next);
        } else if self.mispredicted(before, next.address) {
            self.count_misprediction(before.owner());
        }
        if before.changes() {
            self.change(before.change());
        }
    }

    #[cold]
    fn entered(&mut self, before: &KeptBlock, next: &KeptBlock) {
        // What was on its way is done over again, or goes on after the interrupt.
        if !before.is_system_call() {
            self.charge(next.owner(), self.costs.interrupt);
        }
    }

    #[cold]
    fn count_misprediction(&mut self, owner: usize) {
        self.counts[owner].mispredictions += 1;
        self.charge(owner, self.costs.misprediction);
    }

    #[cold]
    fn change(&mut self, change: Change) {
        let translation = &mut self.translation;
        if matches!(change, Change::Page | Change::Tables | Change::All) {
            self.recent
                .forget_pages(|other| translation.use_again(other));
        }
        match change {
            Change::None => return,
            Change::Page => {}
            Change::Tables => self.translation.switch(),
            Change::All => self.translation.flush(),
            Change::Targets => return self.predictor.forget_targets(),
            Change::Data => {
                self.forget_lines();
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

    #[inline]
    fn mispredicted(&mut self, before: &KeptBlock, next: u64) -> bool {
        match before.ending {
            Ending::None => false,
            Ending::Conditional => {
                let goes_on = next == before.end();
                let settled = goes_on || next == before.target();
                settled && self.predictor.conditional(before.branch_at(), !goes_on)
            }
            _ => self.went_elsewhere(before, next),
        }
    }

    /// The same of other branches.
    #[inline(never)]
    fn went_elsewhere(&mut self, before: &KeptBlock, next: u64) -> bool {
        if before.address < next && next < before.end() {
            // QEMU left the block half-way: to do an access to a device over again, or before its last instruction.
            return false;
        }
        match before.ending {
            Ending::Call | Ending::IndirectCall => self.predictor.called(before.end()),
            _ => {}
        }
        match before.ending {
            Ending::IndirectCall | Ending::IndirectJump => {
                self.predictor.indirect(before.branch_at(), next)
            }
            Ending::Return => self.predictor.returned(next),
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
        self.forget_lines();
        self.code_pages = NO_PAGES;
    }

    fn forget_lines(&mut self) {
        let caches = &mut self.caches;
        self.recent
            .forget_lines(|physical| caches.use_again(physical));
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
            let caches = &mut self.caches;
            self.recent.forget_set(entry >> self.line_bits, |physical| {
                caches.use_again(physical)
            });
            let level = caches.walk(entry);
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
