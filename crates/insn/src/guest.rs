//! The guest's control registers and memory, as QEMU has them: for walks of its page tables.
//!
//! The plugin API has no control registers before version 2, and no physical memory before version 5. QEMU has both under
//! names that it exports to its modules, which are looked for as the plugin starts. Where they are not there, nothing of
//! page tables is known.

use crate::page_tables::{Memory, Root};
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
    resize: Resize,
    buffer: *mut ByteArray,
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

fn named(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a null handle stands for all that is loaded (RTLD_DEFAULT).
    let found = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
