//! Where the kernel begins, and what is done in which order.

use unpack::files::put_in_place;
use unpack::frames;
use unpack::system_calls::{allow_ports, exit, give_up_ports, rename, replace_by, Path};

const AGENT: &[u8] = b"/ktrial/agent\0";
const INIT: &[u8] = b"/init\0";

// The kernel begins here, with a stack that a function's has to be made of.
core::arch::global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {start}",
    start = sym start,
);

extern "C" fn start(stack: *const usize) -> ! {
    if allow_ports().is_ok() {
        frames::stop_here();
        put_in_place();
        give_up_ports();
    }
    start_agent(stack);
    exit(1)
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo) -> ! {
    frames::fail(frames::reason().add(b"unpack panicked"));
    exit(2)
}

fn start_agent(stack: *const usize) {
    let (Some(agent), Some(init)) = (Path::new(AGENT), Path::new(INIT)) else {
        return;
    };
    let errno = match rename(&agent, &init) {
        // SAFETY: this is what the stack pointer was.
        Ok(()) => unsafe { replace_by(&init, stack) },
        Err(errno) => errno,
    };
    frames::fail(
        frames::reason()
            .add(b"cannot start /init: errno ")
            .add_number(errno as u64),
    );
}
