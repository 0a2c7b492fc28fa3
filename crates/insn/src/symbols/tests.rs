use super::*;

const TABLE: &[u8] = b"0000000000001000 A per_cpu
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000100 t __memcpy
ffffffff81000100 T memcpy
ffffffff81000200 T fork
ffffffff81000300 T twin
ffffffff81000400 t twin
ffffffff81000500 t fork.cold
ffffffff81000600 t twin.cold
ffffffff81000700 t fork.cold.2
ffffffff81000800 D data
ffffffffc0000000 t ext4_read\t[ext4]
ffffffffc0000040 t ext4_write\t[ext4]
ffffffffc0100000 t loop_init\t[loop]
not a line
";

fn name_at(symbols: &Symbols<'static>, address: u64) -> Option<(&'static str, &'static str)> {
    let (index, _) = symbols.find(address)?;
    let symbol = symbols.get(symbols.get(index).whole);
    Some((
        core::str::from_utf8(symbol.name).unwrap(),
        core::str::from_utf8(symbol.module).unwrap(),
    ))
}

#[test]
fn addresses_find_their_function() {
    let symbols = Symbols::read(TABLE);
    let table = [
        (0xffff_ffff_8000_0000, None),
        (0xffff_ffff_8100_0010, Some(("startup_64", ""))),
        (0xffff_ffff_8100_0100, Some(("memcpy", ""))),
        (0xffff_ffff_8100_0510, Some(("fork", ""))),
        (0xffff_ffff_8100_0610, Some(("twin.cold", ""))),
        (0xffff_ffff_8100_0710, Some(("fork", ""))),
        (0xffff_ffff_8101_0710, None),
        (0xffff_ffff_c000_0000, Some(("ext4_read", "ext4"))),
        (0xffff_ffff_c000_0041, Some(("ext4_write", "ext4"))),
        (0xffff_ffff_c008_0000, None),
        (0xffff_ffff_c010_0001, Some(("loop_init", "loop"))),
        (0xffff_ffff_ffff_ffff, None),
    ];
    for (address, expected) in table {
        assert_eq!(name_at(&symbols, address), expected, "{address:x}");
    }
}

#[test]
fn a_symbol_ends_where_the_next_one_starts() {
    let symbols = Symbols::read(TABLE);
    assert_eq!(
        symbols.find(0xffff_ffff_8100_0210).map(|(_, end)| end),
        Some(0xffff_ffff_8100_0300)
    );
}

#[test]
fn an_empty_table_finds_nothing() {
    let symbols = Symbols::read(b"");
    assert!(symbols.is_empty());
    assert_eq!(symbols.find(u64::MAX), None);
}

#[test]
fn ends_of_sections_are_no_functions() {
    // 6.12: a marker of one section, with fewer underscores than the first function of the next one.
    let symbols = Symbols::read(
        b"ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81001000 T __irqentry_text_end
ffffffff81001000 T ___first_of_the_next
ffffffff81002000 T __text_poke
ffffffff81003000 T _etext
",
    );
    let table = [
        (0xffff_ffff_8100_0004, "startup_64"),
        (0xffff_ffff_8100_1004, "___first_of_the_next"),
        (0xffff_ffff_8100_2004, "__text_poke"),
    ];
    for (address, expected) in table {
        let (index, _) = symbols.find(address).unwrap();
        assert_eq!(symbols.get(index).name, expected.as_bytes(), "{address:x}");
    }
}

#[test]
fn a_symbol_ends_with_its_section_or_its_module() {
    let symbols = Symbols::read(
        b"ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81002000 T last_of_text
ffffffff81002800 T _etext
ffffffff83000000 T _sinittext
ffffffff83000000 t setup
ffffffff83000400 T _einittext
ffffffff83001000 t leave
ffffffffc0000000 t ext4_read\t[ext4]
ffffffffc0000800 t ext4_exit\t[ext4]
ffffffffc0004000 t ftrace_trampoline\t[__builtin__ftrace]
ffffffffc0400000 t loop_read\t[loop]
ffffffffc0500000 t loop_init\t[loop]
",
    );
    let table = [
        (0xffff_ffff_8100_27ff, Some(("last_of_text", ""))),
        (0xffff_ffff_8100_2800, None),
        (0xffff_ffff_8200_0000, None),
        (0xffff_ffff_8300_03ff, Some(("setup", ""))),
        (0xffff_ffff_8300_0400, None),
        (0xffff_ffff_8300_1004, Some(("leave", ""))),
        (0xffff_ffff_c000_1fff, Some(("ext4_exit", "ext4"))),
        // Behind the page that is never mapped: a trampoline that was made after the table was read.
        (0xffff_ffff_c000_2000, None),
        (
            0xffff_ffff_c000_4010,
            Some(("ftrace_trampoline", "__builtin__ftrace")),
        ),
        (0xffff_ffff_c000_6000, None),
        (0xffff_ffff_c040_ffff, Some(("loop_read", "loop"))),
        (0xffff_ffff_c041_0000, None),
    ];
    for (address, expected) in table {
        assert_eq!(name_at(&symbols, address), expected, "{address:x}");
    }
}
