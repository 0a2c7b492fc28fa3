//! Records of a perf ring, and what of them tells a symbol: perf_event_open(2), linux/perf_event.h.

/// One that the ring had no place for.
const LOST: u32 = 2;
const KSYMBOL: u32 = 17;
/// Of the flags of a symbol's record: it is gone.
const GONE: u16 = 1;
const HEADER: usize = 8;

/// Lines for the symbols in the records; None where some were lost, or do not look like records.
pub fn lines(mut bytes: &[u8]) -> Option<String> {
    let mut lines = String::new();
    while !bytes.is_empty() {
        let kind = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
        let size = usize::from(u16::from_ne_bytes(bytes.get(6..8)?.try_into().ok()?));
        let record = bytes.get(HEADER..size)?;
        match kind {
            LOST => return None,
            KSYMBOL => lines.push_str(&symbol(record)?),
            _ => {}
        }
        bytes = &bytes[size..];
    }
    Some(lines)
}

/// `{ u64 addr; u32 len; u16 ksym_type; u16 flags; char name[]; }`
fn symbol(record: &[u8]) -> Option<String> {
    let address = u64::from_ne_bytes(record.get(..8)?.try_into().ok()?);
    let length = u32::from_ne_bytes(record.get(8..12)?.try_into().ok()?);
    let kind = u16::from_ne_bytes(record.get(12..14)?.try_into().ok()?);
    let flags = u16::from_ne_bytes(record.get(14..16)?.try_into().ok()?);
    let name = record.get(16..)?.split(|&byte| byte == 0).next()?;
    if flags & GONE != 0 {
        return Some(String::new());
    }
    let kind = match kind {
        1 => "bpf".into(),
        2 => "ool".into(),
        other => other.to_string(),
    };
    let name = String::from_utf8_lossy(name).replace(char::is_whitespace, "?");
    Some(format!("{address:x} {length:x} {kind} {name}\n"))
}

/// The lines of /proc/kallsyms that are of generated code: it stands there as a module's.
pub fn listed(kallsyms: &str) -> String {
    kallsyms
        .lines()
        .filter(|line| line.ends_with("\t[bpf]") || line.contains("\t[__builtin__"))
        .flat_map(|line| [line, "\n"])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, content: &[u8]) -> Vec<u8> {
        let size = (HEADER + content.len()) as u16;
        let header = [&kind.to_ne_bytes()[..], &[0; 2], &size.to_ne_bytes()].concat();
        [&header[..], content].concat()
    }

    fn ksymbol(address: u64, kind: u16, flags: u16, name: &[u8]) -> Vec<u8> {
        let numbers = [kind.to_ne_bytes(), flags.to_ne_bytes()].concat();
        let content = [
            &address.to_ne_bytes()[..],
            &0x80_u32.to_ne_bytes(),
            &numbers,
            name,
        ]
        .concat();
        record(KSYMBOL, &content)
    }

    #[test]
    fn a_symbol_that_comes_is_a_line_and_one_that_goes_is_none() {
        let bytes = [
            ksymbol(0xffff_ffff_c020_1040, 1, 0, b"bpf_prog_0123_it\0\0\0\0"),
            record(9, &[0; 8]),
            ksymbol(0xffff_ffff_c020_1040, 1, GONE, b"bpf_prog_0123_it\0\0\0\0"),
            ksymbol(0xffff_ffff_c030_0000, 2, 0, b"ftrace_trampoline\0\0\0"),
        ];
        let expected = "ffffffffc0201040 80 bpf bpf_prog_0123_it\n\
                        ffffffffc0300000 80 ool ftrace_trampoline\n";
        assert_eq!(lines(&bytes.concat()).as_deref(), Some(expected));
    }

    #[test]
    fn of_the_kernels_list_generated_code_is_left() {
        let (kept, other) = (
            "ffffffffc0300000 t ftrace_trampoline\t[__builtin__ftrace]\n",
            "ffffffff81000000 T _stext\nffffffffc0000000 t ext4_read\t[ext4]\n",
        );
        assert_eq!(listed(&[other, kept, other].concat()), kept);
    }

    #[test]
    fn nothing_is_told_where_some_are_lost_or_cut_off() {
        let whole = ksymbol(0xffff_ffff_c020_1040, 1, 0, b"it\0\0\0\0\0\0");
        assert_eq!(
            lines(&[whole.clone(), record(LOST, &[0; 16])].concat()),
            None
        );
        assert_eq!(lines(&whole[..whole.len() - 1]), None);
        assert_eq!(lines(&record(KSYMBOL, &[0; 8])), None);
        assert_eq!(lines(&[0; 16]), None);
    }
}
