//! A program's address-space layout: fixed, or drawn from a seed.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;

use nix::sys::personality::{self, Persona};

use crate::settle;

const RANDOMIZE: &str = "/proc/sys/kernel/randomize_va_space";
const STACK_MMAP_AND_HEAP: &str = "2";
/// The kernel's generator hands out random numbers from a batch that it made earlier, on some versions even after
/// it has been seeded anew: at most 16 numbers, several of which each exec takes.
const EXECS_TO_USE_UP_A_BATCH: usize = 8;
const SEED_BYTES: usize = 32;

/// struct rand_pool_info of include/uapi/linux/random.h, with its buffer.
#[repr(C)]
struct Entropy {
    bits: libc::c_int,
    size: libc::c_int,
    bytes: [u8; SEED_BYTES],
}

const RANDOM_IOCTLS: u8 = b'R';
nix::ioctl_write_ptr_bad!(
    add_entropy,
    nix::request_code_write!(RANDOM_IOCTLS, 3, 2 * size_of::<libc::c_int>()),
    Entropy
);
nix::ioctl_none!(reseed, RANDOM_IOCTLS, 7);

/// Randomization is on, and seeded, while this lives; then it is as it was.
#[derive(Debug)]
pub struct Seeded {
    setting_before: String,
}

impl Seeded {
    /// Seed the kernel's random numbers, from which it draws layouts, and switch randomization on.
    pub fn with(seed: u64) -> io::Result<Self> {
        let setting_before = fs::read_to_string(RANDOMIZE)?;
        fs::write(RANDOMIZE, STACK_MMAP_AND_HEAP)?;
        let seeded = Self { setting_before };
        let random = File::open("/dev/random")?;
        let entropy = Entropy {
            bits: 8 * SEED_BYTES as i32,
            size: SEED_BYTES as i32,
            bytes: expand(seed),
        };
        // SAFETY: RNDADDENTROPY reads one struct rand_pool_info and its buffer, which `entropy` is.
        unsafe { add_entropy(random.as_raw_fd(), &entropy) }?;
        // SAFETY: RNDRESEEDCRNG takes no argument.
        unsafe { reseed(random.as_raw_fd()) }?;
        for _ in 0..EXECS_TO_USE_UP_A_BATCH {
            settle::nothing().status()?;
        }
        Ok(seeded)
    }

    /// Set back what was set.
    pub fn end(self) -> io::Result<()> {
        fs::write(RANDOMIZE, self.setting_before)
    }
}

/// In the child, before exec: whether its layout is random at all.
pub fn in_child(random: bool) -> io::Result<()> {
    let others = personality::get()? - Persona::ADDR_NO_RANDOMIZE;
    let wanted = if random {
        others
    } else {
        others | Persona::ADDR_NO_RANDOMIZE
    };
    personality::set(wanted)?;
    Ok(())
}

/// SplitMix64 (Steele, Lea, Flood 2014), four times: seeds that are near each other give bytes that are not.
fn expand(seed: u64) -> [u8; SEED_BYTES] {
    let mut state = seed;
    let mut bytes = [0; SEED_BYTES];
    for chunk in bytes.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_expanded_as_splitmix64_is_published() {
        let first = u64::from_le_bytes(expand(1_234_567)[..8].try_into().unwrap());
        assert_eq!(first, 6_457_827_717_110_365_317);
        assert_ne!(expand(1), expand(2));
    }
}
