//! Files that QEMU hands to the guest (`-fw_cfg name=…`), read through its I/O ports without a driver.
//!
//! Interface: docs/specs/fw_cfg.rst in QEMU. A restored guest reads what the restoring QEMU was started with.

use std::fs;
use std::io;

use crate::ports::Ports;

const SIGNATURE: u16 = 0;
const FILE_DIRECTORY: u16 = 0x19;
const ENTRY: usize = 64;
const NAME: usize = 8;

/// The content of the file `name`.
pub fn read_file(ports: &mut Ports, name: &str) -> Result<Vec<u8>, String> {
    match ports {
        Ports::Direct => read_by_ports(ports, name),
        Ports::Device(_) => read_by_driver(name),
    }
}

fn read_by_ports(ports: &mut Ports, name: &str) -> Result<Vec<u8>, String> {
    let answer = |error: io::Error| format!("cannot read fw_cfg: {error}");
    if take(ports, Some(SIGNATURE), 4).map_err(answer)? != b"QEMU" {
        return Err("this machine has no fw_cfg: the host must be QEMU".into());
    }
    let count = take(ports, Some(FILE_DIRECTORY), 4).map_err(answer)?;
    let directory = take(ports, None, be32(&count) * ENTRY).map_err(answer)?;
    let (size, item) = find(&directory, name).ok_or_else(|| {
        format!("the host gave no fw_cfg file {name} (-fw_cfg name={name},file=…)")
    })?;
    take(ports, Some(item), size).map_err(answer)
}

fn take(ports: &mut Ports, item: Option<u16>, size: usize) -> io::Result<Vec<u8>> {
    if let Some(item) = item {
        ports.select_fw_cfg(item)?;
    }
    let mut bytes = vec![0; size];
    ports.read_fw_cfg(&mut bytes)?;
    Ok(bytes)
}

/// Size and item of the file `name`. An entry: size and item (big-endian, 32 and 16 bits), 16 bits reserved, 56 bytes
/// of name, ended by a zero byte.
fn find(directory: &[u8], name: &str) -> Option<(usize, u16)> {
    directory.chunks_exact(ENTRY).find_map(|entry| {
        let entry_name = entry[NAME..].split(|&byte| byte == 0).next();
        (entry_name == Some(name.as_bytes()))
            .then(|| (be32(&entry[..4]), u16::from_be_bytes([entry[4], entry[5]])))
    })
}

fn be32(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |value, &byte| (value << 8) | usize::from(byte))
}

/// The driver keeps the sizes that it found when it was loaded: it must be loaded after the snapshot, or never see
/// a file of another size.
fn read_by_driver(name: &str) -> Result<Vec<u8>, String> {
    let path = format!("/sys/firmware/qemu_fw_cfg/by_name/{name}/raw");
    fs::read(&path).map_err(|error| {
        format!("no ioperm and no iopl in this kernel, and {path} cannot be read: {error} (module qemu_fw_cfg)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(size: u32, item: u16, name: &str) -> Vec<u8> {
        let mut bytes = [
            &size.to_be_bytes()[..],
            &item.to_be_bytes(),
            &[0; 2],
            name.as_bytes(),
        ]
        .concat();
        bytes.resize(ENTRY, 0);
        bytes
    }

    #[test]
    fn a_file_is_found_by_its_whole_name() {
        let directory = [
            entry(7, 0x20, "opt/ktrial/plan2"),
            entry(300, 0x21, "opt/ktrial/plan"),
        ]
        .concat();
        assert_eq!(find(&directory, "opt/ktrial/plan"), Some((300, 0x21)));
        assert_eq!(find(&directory, "opt/ktrial"), None);
    }

    #[test]
    fn a_name_may_fill_its_field() {
        let name = "n".repeat(ENTRY - NAME);
        assert_eq!(find(&entry(1, 2, &name), &name), Some((1, 2)));
    }
}
