//! The program in whose process this is: where its code, its constants and its tables lie.

use crate::c_library;
use core::ffi::{c_char, c_int, c_void};
use core::ops::Range;
use core::slice::from_raw_parts;

const LOAD: u32 = 1;
const EXECUTE: u32 = 1;
const WRITE: u32 = 2;

/// `Elf64_Phdr`.
#[repr(C)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    in_file: u64,
    in_memory: u64,
    alignment: u64,
}

/// The beginning of `dl_phdr_info`.
#[repr(C)]
struct Loaded {
    base: usize,
    name: *const c_char,
    segments: *const Segment,
    count: u16,
}

/// The program's segments, loaded and relocated.
pub struct Program {
    base: usize,
    segments: &'static [Segment],
}

unsafe extern "C" fn first(loaded: *const c_void, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: as the dynamic linker calls it: `loaded` is its own, and the segments' table lives as long as the program;
    // `found` is `Program::own`'s.
    unsafe {
        let loaded = &*loaded.cast::<Loaded>();
        let segments = from_raw_parts(loaded.segments, loaded.count.into());
        *found.cast() = Some(Program {
            base: loaded.base,
            segments,
        });
    }
    1
}

impl Program {
    /// This process's.
    pub fn own() -> Option<Self> {
        let mut found: Option<Self> = None;
        // The program is the first of all objects.
        // SAFETY: `first` keeps to what is asked of it.
        unsafe { c_library::objects(first, (&raw mut found).cast()) };
        found
    }

    /// The function that stands before its name in one of the program's tables.
    pub fn function_named(&self, name: &[u8]) -> Option<usize> {
        self.loaded(0).find_map(|constants| {
            let mut from = constants.start;
            while let Some(at) = found(from..constants.end, name) {
                let function = self.before(at);
                if function.is_some() {
                    return function;
                }
                from = at + 1;
            }
            None
        })
    }

    /// So many bytes of code from an address on, or fewer; None where no code is.
    pub fn code(&self, address: usize, most: usize) -> Option<&'static [u8]> {
        let code = self.loaded(EXECUTE).find(|one| one.contains(&address))?;
        let length = most.min(code.end - address);
        // SAFETY: within a segment that is readable, and stays.
        Some(unsafe { from_raw_parts(address as *const u8, length) })
    }

    /// Where its lowest segment begins.
    pub fn start(&self) -> usize {
        let lowest = self.segments.iter().filter(|one| one.kind == LOAD);
        lowest
            .map(|one| self.base + one.address as usize)
            .min()
            .unwrap_or(0)
    }

    /// The word before the one that points here, where it points to code.
    fn before(&self, pointed: usize) -> Option<usize> {
        self.loaded(WRITE).find_map(|table| {
            let words = table.start.next_multiple_of(8);
            // SAFETY: whole words of a segment that is readable; nobody writes to it yet, or nothing that is looked for.
            let words = unsafe { from_raw_parts(words as *const usize, (table.end - words) / 8) };
            let place = words.windows(2).position(|pair| pair[1] == pointed)?;
            let function = words[place];
            self.code(function, 1).map(|_| function)
        })
    }

    /// Segments with this right, beside that to be read, and no other.
    fn loaded(&self, right: u32) -> impl Iterator<Item = Range<usize>> + '_ {
        let wanted =
            move |one: &&Segment| one.kind == LOAD && one.flags & (EXECUTE | WRITE) == right;
        self.segments.iter().filter(wanted).map(|one| {
            let start = self.base + one.address as usize;
            start..start + one.in_file as usize
        })
    }
}

fn found(within: Range<usize>, what: &[u8]) -> Option<usize> {
    let length = within.end.saturating_sub(within.start);
    // SAFETY: a part of a segment that is readable.
    let at = unsafe { c_library::found(within.start as *const u8, length, what) };
    (!at.is_null()).then_some(at as usize)
}
