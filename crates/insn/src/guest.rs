//! The guest's control registers and memory, as QEMU has them: for walks of its page tables.
//!
//! The plugin API has no control registers before version 2, and no physical memory before version 5. QEMU has both under
//! names that it exports to its modules, which are looked for as the plugin starts. Where they are not there, nothing of
//! page tables is known.

use crate::page_tables::{Memory, Root};
use alloc::boxed::Box;
use core::cell::Cell;
use core::ffi::{c_char, c_int, c_void, CStr};

/// glib's, as far as it is public.
#[repr(C)]
struct ByteArray {
    data: *const u8,
    length: u32,
}

type FindCpu = unsafe extern "C" fn(index: c_int) -> *mut c_void;
type ReadRegister =
    unsafe extern "C" fn(cpu: *mut c_void, to: *mut ByteArray, register: c_int) -> c_int;
type ReadMemory = unsafe extern "C" fn(address: u64, to: *mut c_void, length: u64, is_write: bool);
type Map = unsafe extern "C" fn(address: u64, length: *mut u64, is_write: bool) -> *const u8;
type Unmap = unsafe extern "C" fn(at: *const u8, length: u64, is_write: bool, accessed: u64);
type FindRam = unsafe extern "C" fn(at: *const u8, round: bool, offset: *mut u64) -> *const c_void;
type NewArray = unsafe extern "C" fn() -> *mut ByteArray;
type Resize = unsafe extern "C" fn(array: *mut ByteArray, length: u32) -> *mut ByteArray;

extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Numbers of registers as QEMU's stub for GDB has them (target/i386/gdbstub.c), the same since QEMU 4.2.
const CR3: c_int = 29;
const CR4: c_int = 30;

/// What was found of QEMU's.
pub struct Guest {
    find_cpu: FindCpu,
    cpu: Cell<*mut c_void>,
    read_register: ReadRegister,
    read_memory: ReadMemory,
    mapping: Option<Mapping>,
    resize: Resize,
    buffer: *mut ByteArray,
}

/// The guest's memory as QEMU has mapped it: a page of RAM stays where it is as long as QEMU runs.
struct Mapping {
    map: Map,
    unmap: Unmap,
    find_ram: FindRam,
    /// Physical pages, and where their first bytes are; each in the place that its lowest bits name.
    pages: Box<[Cell<(u64, *const u8)>]>,
}

/// So many pages are remembered: more than a guest has tables in use.
const PAGES: usize = 1024;
const PAGE: u64 = 4096;
const NO_PAGE: (u64, *const u8) = (u64::MAX, core::ptr::null());

impl Mapping {
    fn find() -> Option<Self> {
        // SAFETY: the types are those of QEMU's headers.
        unsafe {
            Some(Self {
                map: core::mem::transmute::<*mut c_void, Map>(named(c"cpu_physical_memory_map")?),
                unmap: core::mem::transmute::<*mut c_void, Unmap>(named(
                    c"cpu_physical_memory_unmap",
                )?),
                find_ram: core::mem::transmute::<*mut c_void, FindRam>(named(
                    c"qemu_ram_block_from_host",
                )?),
                pages: alloc::vec![Cell::new(NO_PAGE); PAGES].into(),
            })
        }
    }

    /// Where the byte at a physical address is; None where it is in no RAM.
    fn host(&self, physical: u64) -> Option<*const u8> {
        let page = physical / PAGE;
        let known = &self.pages[page as usize % PAGES];
        if known.get().0 != page {
            known.set((page, self.ram(page * PAGE)?));
        }
        Some(known.get().1.wrapping_add((physical % PAGE) as usize))
    }

    #[cold]
    fn ram(&self, address: u64) -> Option<*const u8> {
        let (mut length, mut offset) = (PAGE, 0);
        // SAFETY: what was mapped is given back; RAM stays where it is all the same. What is none has a buffer lent, which
        // is in no RAM of the guest's.
        unsafe {
            let at = (self.map)(address, &mut length, false);
            if at.is_null() {
                return None;
            }
            let is_ram = length >= PAGE && !(self.find_ram)(at, false, &mut offset).is_null();
            (self.unmap)(at, length, false, 0);
            is_ram.then_some(at)
        }
    }
}

impl Guest {
    /// None where QEMU does not show what is needed.
    pub fn find() -> Option<Self> {
        // SAFETY: the types are those of QEMU's and glib's headers.
        unsafe {
            let new_array: NewArray = core::mem::transmute(named(c"g_byte_array_new")?);
            Some(Self {
                find_cpu: core::mem::transmute::<*mut c_void, FindCpu>(named(c"qemu_get_cpu")?),
                cpu: Cell::new(core::ptr::null_mut()),
                read_register: core::mem::transmute::<*mut c_void, ReadRegister>(named(
                    c"x86_cpu_gdb_read_register",
                )?),
                read_memory: core::mem::transmute::<*mut c_void, ReadMemory>(named(
                    c"cpu_physical_memory_rw",
                )?),
                mapping: Mapping::find(),
                resize: core::mem::transmute::<*mut c_void, Resize>(named(
                    c"g_byte_array_set_size",
                )?),
                buffer: new_array(),
            })
        }
    }

    fn register(&self, number: c_int) -> Option<u64> {
        if self.cpu.get().is_null() {
            // SAFETY: the CPUs are there once one of them runs.
            self.cpu.set(unsafe { (self.find_cpu)(0) });
        }
        let cpu = self.cpu.get();
        if cpu.is_null() {
            return None;
        }
        // SAFETY: called in the thread that runs this CPU; the buffer is ours.
        let array = unsafe {
            (self.resize)(self.buffer, 0);
            (self.read_register)(cpu, self.buffer, number);
            &*self.buffer
        };
        if array.length as usize != size_of::<u64>() {
            return None;
        }
        // SAFETY: eight bytes are there; nothing is said of their alignment.
        Some(unsafe { array.data.cast::<u64>().read_unaligned() })
    }
}

impl Memory for Guest {
    fn root(&self) -> Option<Root> {
        Some(Root::of(self.register(CR3)?, self.register(CR4)?))
    }

    fn read(&self, physical: u64) -> Option<u64> {
        if let Some(host) = self.mapping.as_ref().and_then(|each| each.host(physical)) {
            // SAFETY: entries of page tables have eight bytes, and are in one page.
            return Some(unsafe { host.cast::<u64>().read() });
        }
        let mut word = 0u64;
        // SAFETY: `word` has room for what is read; what is in no memory reads as something, and is no mapping.
        unsafe {
            (self.read_memory)(
                physical,
                (&raw mut word).cast(),
                size_of::<u64>() as u64,
                false,
            );
        }
        Some(word)
    }
}

/// Where something of this name is, in QEMU or in what it has loaded.
pub fn named(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a null handle stands for all that is loaded (RTLD_DEFAULT).
    let found = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
