//! The archive's entries: cpio's `newc` format, as initial RAM disks have it (Documentation/driver-api/early-userspace/
//! buffer-format.rst in the kernel).

/// Bytes before an entry's name.
pub const HEADER: usize = 110;
/// The name of the entry that ends an archive.
pub const TRAILER: &[u8] = b"TRAILER!!!";

const MAGIC: &[u8] = b"070701";
const FIELD: usize = 8;
const FORMAT: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What stands at this place is taken away.
    Nothing,
    /// A directory.
    Directory,
    /// A file.
    Regular,
    /// A symbolic link; its content is where it leads.
    Link,
}

/// What stands before an entry's name and content.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Its permissions.
    pub permissions: u32,
    /// Bytes of its content.
    pub size: u64,
    /// Bytes of its name, with the zero byte that ends it.
    pub name_size: usize,
}

impl Header {
    /// Read it; None where these bytes are no header of this format.
    pub fn read(bytes: &[u8; HEADER]) -> Option<Self> {
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let field = |number: usize| {
            let start = MAGIC.len() + number * FIELD;
            hexadecimal(&bytes[start..start + FIELD])
        };
        let mode = field(1)?;
        let kind = match mode & FORMAT {
            0 => Kind::Nothing,
            DIRECTORY => Kind::Directory,
            REGULAR => Kind::Regular,
            LINK => Kind::Link,
            _ => return None,
        };
        Some(Self {
            kind,
            permissions: mode & 0o7777,
            size: field(6)?.into(),
            name_size: field(11)? as usize,
        })
    }

    /// Bytes between the name and the content.
    pub fn after_name(&self) -> usize {
        padding(HEADER + self.name_size)
    }

    /// Bytes between the content and the next header.
    pub fn after_content(&self) -> usize {
        padding(self.size as usize)
    }
}

/// Up to the next multiple of four.
fn padding(size: usize) -> usize {
    size.wrapping_neg() & 3
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value: u32, &digit| {
        Some(value << 4 | char::from(digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(mode: &str, size: &str, name_size: &str) -> [u8; HEADER] {
        let zero = "00000000";
        let fields = [
            zero, mode, zero, zero, zero, zero, size, zero, zero, zero, zero, name_size, zero,
        ];
        let text = format!("070701{}", fields.concat());
        text.into_bytes().try_into().unwrap()
    }

    #[test]
    fn a_file_has_permissions_a_size_and_a_name() {
        let read = Header::read(&header("000081ed", "0000000A", "00000005")).unwrap();
        assert_eq!(
            (read.kind, read.permissions, read.size, read.name_size),
            (Kind::Regular, 0o755, 10, 5)
        );
        assert_eq!((read.after_name(), read.after_content()), (1, 2));
    }

    #[test]
    fn directories_links_and_what_is_taken_away_are_told_apart() {
        for (mode, kind) in [
            ("000041ed", Kind::Directory),
            ("0000a1ff", Kind::Link),
            ("00000000", Kind::Nothing),
        ] {
            assert_eq!(
                Header::read(&header(mode, "00000000", "00000002"))
                    .unwrap()
                    .kind,
                kind
            );
        }
    }

    #[test]
    fn a_device_another_format_and_other_letters_are_refused() {
        assert_eq!(
            Header::read(&header("000021ed", "00000000", "00000002")),
            None
        );
        assert_eq!(
            Header::read(&header("000081ed", "0000000g", "00000002")),
            None
        );
        let mut other = header("000081ed", "00000000", "00000002");
        other[5] = b'7';
        assert_eq!(Header::read(&other), None);
    }
}
