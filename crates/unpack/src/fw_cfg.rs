//! The file that QEMU hands over (`-fw_cfg name=…`), read the cheapest way that this kernel allows.
//!
//! Interface: docs/specs/fw_cfg.rst in QEMU. By DMA QEMU itself writes into this program's pages, whose places in memory
//! /proc/self/pagemap tells. Without that (CONFIG_PROC_PAGE_MONITOR) it is read byte by byte through a port.

use core::arch::asm;
use core::sync::atomic::{compiler_fence, Ordering};

use crate::system_calls::{lock, File, Path};

/// Bytes that are read at once.
pub const PIECE: usize = PAGES * PAGE;

const PAGE: usize = 4096;
const PAGES: usize = 64;
const SELECTOR: u16 = 0x510;
const DATA: u16 = 0x511;
const DMA_HIGH: u16 = 0x514;
const DMA_LOW: u16 = 0x518;
const SIGNATURE: u16 = 0;
const FEATURES: u16 = 1;
const HAS_DMA: u8 = 2;
const DIRECTORY: u16 = 0x19;
const ENTRY: usize = 64;
const NAME: usize = 8;
const DMA_ERROR: u32 = 1;
const DMA_READ: u32 = 2;
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

/// What is read into, and what QEMU is told where that is.
#[repr(C, align(4096))]
pub struct Buffer {
    bytes: [u8; PIECE],
    order: [u32; 4],
}

impl Buffer {
    /// Empty.
    pub const fn empty() -> Self {
        Self {
            bytes: [0; PIECE],
            order: [0; 4],
        }
    }
}

/// Why nothing can be read.
#[derive(Debug)]
pub struct Unreadable(pub &'static str);

/// How it is read.
enum Way {
    /// QEMU writes it to where `pagemap` says that the buffer is.
    Dma(File),
    /// Byte by byte.
    Port,
}

/// A file of the host's, read from its beginning to its end.
pub struct Source<'a> {
    way: Way,
    buffer: &'a mut Buffer,
    left: usize,
    at: usize,
    end: usize,
}

impl<'a> Source<'a> {
    /// Find the file `name`. The ports are allowed, and /proc is mounted.
    pub fn open(buffer: &'a mut Buffer, name: &[u8]) -> Result<Self, Unreadable> {
        let mut word = [0; 4];
        select(SIGNATURE);
        take(&mut word);
        if &word != b"QEMU" {
            return Err(Unreadable("this machine has no fw_cfg"));
        }
        select(FEATURES);
        take(&mut word);
        let has_dma = word[0] & HAS_DMA != 0;
        let (size, item) = find(name).ok_or(Unreadable("the host gave no files"))?;
        select(item);
        let way = match pagemap(buffer) {
            Some(file) if has_dma => Way::Dma(file),
            _ => Way::Port,
        };
        Ok(Self {
            way,
            buffer,
            left: size,
            at: 0,
            end: 0,
        })
    }

    /// Up to so many of the next bytes; none at the end.
    pub fn next(&mut self, most: usize) -> Result<&[u8], Unreadable> {
        if self.at == self.end {
            self.fill()?;
        }
        let start = self.at;
        self.at = self.end.min(start + most);
        Ok(&self.buffer.bytes[start..self.at])
    }

    /// All is read.
    pub fn close(self) {
        if let Way::Dma(pagemap) = self.way {
            let _ = pagemap.close();
        }
    }

    fn fill(&mut self) -> Result<(), Unreadable> {
        let size = self.left.min(PIECE);
        match &self.way {
            Way::Dma(pagemap) => read_by_dma(pagemap, self.buffer, size)?,
            Way::Port => take(&mut self.buffer.bytes[..size]),
        }
        self.left -= size;
        (self.at, self.end) = (0, size);
        Ok(())
    }
}

/// What tells where the buffer is; None where this kernel does not.
fn pagemap(buffer: &mut Buffer) -> Option<File> {
    for page in buffer.bytes.chunks_mut(PAGE) {
        page[0] = 1; // a page of its own, not the one of zeros that all share
    }
    buffer.order[0] = 1;
    lock(&buffer.bytes).ok()?;
    let file = File::open(&Path::new(b"/proc/self/pagemap\0")?).ok()?;
    let mut frames = [0; PAGES + 1];
    places(&file, buffer, &mut frames)?;
    Some(file)
}

/// Where each page of the buffer is, and the one behind it that holds the order.
fn places(pagemap: &File, buffer: &Buffer, places: &mut [u64; PAGES + 1]) -> Option<()> {
    let mut bytes = [0; (PAGES + 1) * 8];
    let first = buffer.bytes.as_ptr() as usize / PAGE;
    if pagemap.read_at(&mut bytes, first * 8).ok()? != bytes.len() {
        return None;
    }
    for (place, entry) in places.iter_mut().zip(bytes.chunks_exact(8)) {
        let entry = u64::from_le_bytes(entry.try_into().ok()?);
        // Who may not know where its pages are is told zero.
        if entry & PRESENT == 0 || entry & FRAME == 0 {
            return None;
        }
        *place = (entry & FRAME) * PAGE as u64;
    }
    Some(())
}

/// Pages are asked for anew each time: the kernel may have moved them since.
fn read_by_dma(pagemap: &File, buffer: &mut Buffer, size: usize) -> Result<(), Unreadable> {
    let mut frames = [0; PAGES + 1];
    places(pagemap, buffer, &mut frames).ok_or(Unreadable("/proc/self/pagemap tells no more"))?;
    let mut page = 0;
    while page * PAGE < size {
        let first = page;
        page += 1;
        while page * PAGE < size && frames[page] == frames[page - 1] + PAGE as u64 {
            page += 1;
        }
        let length = size.min(page * PAGE) - first * PAGE;
        let place = frames[first];
        let order = [DMA_READ, length as u32, (place >> 32) as u32, place as u32];
        transfer(&mut buffer.order, order, frames[PAGES])?;
    }
    compiler_fence(Ordering::SeqCst);
    Ok(())
}

fn transfer(shared: &mut [u32; 4], order: [u32; 4], place: u64) -> Result<(), Unreadable> {
    for (word, value) in shared.iter_mut().zip(order) {
        // SAFETY: a word of this array; QEMU reads it, so that it has to be in memory.
        unsafe { core::ptr::write_volatile(word, value.to_be()) };
    }
    compiler_fence(Ordering::SeqCst);
    out(DMA_HIGH, ((place >> 32) as u32).to_be());
    out(DMA_LOW, (place as u32).to_be());
    compiler_fence(Ordering::SeqCst);
    loop {
        // SAFETY: the same word, which QEMU has written.
        let control = u32::from_be(unsafe { core::ptr::read_volatile(&shared[0]) });
        match control {
            0 => return Ok(()),
            _ if control & DMA_ERROR != 0 => return Err(Unreadable("QEMU refused to write it")),
            _ => core::hint::spin_loop(),
        }
    }
}

/// Size and item of the file. An entry: size and item (big-endian, 32 and 16 bits), 16 bits reserved, 56 bytes of name,
/// ended by a zero byte.
fn find(name: &[u8]) -> Option<(usize, u16)> {
    let mut count = [0; 4];
    select(DIRECTORY);
    take(&mut count);
    (0..u32::from_be_bytes(count)).find_map(|_| {
        let mut entry = [0; ENTRY];
        take(&mut entry);
        let entry_name = entry[NAME..].split(|&byte| byte == 0).next()?;
        let size = u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]);
        (entry_name == name).then_some((size as usize, u16::from_be_bytes([entry[4], entry[5]])))
    })
}

fn select(item: u16) {
    // SAFETY: the port is allowed, and is fw_cfg's selector on every PC that QEMU makes; no memory is touched.
    unsafe { asm!("out dx, ax", in("dx") SELECTOR, in("ax") item, options(nomem, nostack)) };
}

fn out(port: u16, value: u32) {
    // SAFETY: the port is allowed, and starts what the order says: QEMU writes to the buffer, which the caller fences.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack)) };
}

fn take(buffer: &mut [u8]) {
    // SAFETY: `rep insb` writes rcx bytes from rdi on, which is `buffer` exactly.
    unsafe {
        asm!("rep insb", in("dx") DATA, inout("rcx") buffer.len() => _, inout("rdi") buffer.as_mut_ptr() => _,
             options(nostack))
    };
}
