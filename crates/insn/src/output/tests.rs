use super::*;
use crate::calls::Counted;
use crate::decode::Repeat;
use crate::layout::LENGTH;
use crate::page_tables::Unknown;
use crate::symbols::Symbols;

const TABLE: &[u8] = b"ffffffff81000000 T vfs_read\nffffffffc0000000 t ext4_\"x\\\t[ext4]\n";

fn line(operations: &[u64], vector: bool) -> String {
    modelled_line(operations, vector, None)
}

fn modelled_line(operations: &[u64], vector: bool, model: Option<&MachineModel>) -> String {
    let mut functions = Functions::new(Symbols::read(TABLE), 100);
    functions.find(0xffff_ffff_8100_0000);
    functions.find(0xffff_ffff_c000_0000);
    let mut pages = Pages::default();
    pages.find(0x40_1000, Some(&[0; 4096]));
    let mut repeats = Repeats::default();
    repeats.find(
        0xffff_ffff_8100_0004,
        0xffff_ffff_8100_0007,
        2,
        Repeat {
            width: 8,
            accesses: 2,
        },
    );
    let mut counters = vec![0; LENGTH];
    counters[2] = 10;
    counters[ENTERED + 2] = 2;
    counters[3] = 5;
    counters[PAGES + 1] = 4;
    counters[repeat(0, RepeatCounter::Passes)] = 65;
    counters[repeat(0, RepeatCounter::Accesses)] = 128;
    counters[repeat(0, RepeatCounter::Done)] = 1;
    let closed = Closed {
        counters,
        marks: operations.len() as u64,
        operations: operations.to_vec(),
        bytes: operations.iter().map(|one| one * 8).collect(),
        modelled: 1000,
        each_modelled: operations.iter().map(|one| one * 100).collect(),
        whole: true,
    };
    let used = Used {
        functions: functions.count(),
        pages: pages.count(),
        repeats: repeats.count(),
    };
    region(
        &closed,
        used,
        &Names {
            functions: &functions,
            pages: &pages,
            repeats: &repeats,
            calls: None,
            caches: None,
            model,
        },
        vector,
    )
}

#[test]
fn a_region_s_line() {
    let expected = concat!(
        r#"{"whole":true,"instructions":19,"marks":2,"strings":1,"passes":65,"bytes":512,"#,
        r#""functions":[["vfs_read","",10,2,1,65,512],["ext4_\"x\\","ext4",5,0,0,0,0]],"#,
        r#""pages":[[4198400,3340005893,4,0,0,0]],"#,
        r#""operations":{"count":2,"sum":12,"minimum":5,"maximum":7,"middle":[5,7],"#,
        r#""bytes":[40,56],"vector":[7,5],"byte_vector":[56,40]}}"#,
        "\n"
    );
    let line = line(&[7, 5], true);
    assert_eq!(line.replace(&checksum(&line), "3340005893"), expected);
}

#[test]
fn a_run_s_lines() {
    let marking = Marking {
        regions: 3,
        foreign: 2,
        ..Marking::default()
    };
    assert_eq!(next_run(), "{\"run\":\"begin\"}\n");
    let expected = concat!(
        r#"{"run":"end","regions":3,"nested":0,"loose_operations":0,"loose_ends":0,"unclosed":0,"dropped":0,"#,
        r#""foreign":2}"#,
        "\n"
    );
    assert_eq!(run_end(&marking), expected);
}

/// The checksum itself is tested in `pages`.
fn checksum(line: &str) -> String {
    line.split("4198400,")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap()
        .into()
}

#[test]
fn operations_without_a_vector() {
    assert!(line(&[], false).contains(
        r#""operations":{"count":0,"sum":0,"minimum":0,"maximum":0,"middle":[0,0],"bytes":[0,0]}"#
    ));
    assert!(line(&[3, 1, 2], false)
        .contains(r#""minimum":1,"maximum":3,"middle":[2,2],"bytes":[16,16]}"#));
}

#[test]
fn the_first_and_the_last_line() {
    assert_eq!(
        header(4, 12, true),
        "{\"insn\":2,\"api\":4,\"symbols\":12,\"inline\":true}\n"
    );
    assert_eq!(end(), "{\"end\":true}\n");
}

#[test]
fn a_region_with_its_tree() {
    let mut functions = Functions::new(Symbols::read(TABLE), 100);
    let read = functions.find(0xffff_ffff_8100_0000).number;
    let mut calls = Calls::default();
    let now = |program, own| Counted {
        program,
        kernel: own,
        functions: if own == 0 { &[0; 3] } else { &[0, 0, 10] },
    };
    calls.enter(read, crate::roles::Role::Entry, now(4, 0));
    calls.charge(now(4, 10));
    let mut counters = vec![0; LENGTH];
    counters[read as usize] = 10;
    let closed = Closed {
        counters,
        marks: 0,
        operations: Vec::new(),
        bytes: Vec::new(),
        modelled: 0,
        each_modelled: Vec::new(),
        whole: true,
    };
    let used = Used {
        functions: functions.count(),
        pages: 1,
        repeats: 0,
    };
    let (pages, repeats) = (Pages::default(), Repeats::default());
    let names = Names {
        functions: &functions,
        pages: &pages,
        repeats: &repeats,
        calls: Some(&calls),
        caches: None,
        model: None,
    };
    let line = region(&closed, used, &names, false);
    let expected = r#""unmatched":0,"tasks":[[0,10,4]],"tree":[[0,-1,0,0],[0,-1,4,0],[0,0,10,1]]}"#;
    assert!(line.trim_end().ends_with(expected), "{line}");
}

#[test]
fn a_row_with_what_the_caches_saw() {
    let mut caches = Caches::new(crate::caches::Shapes::default(), LENGTH);
    caches.access(7, 0x1000, 8, true);
    assert_eq!(seen_by_caches(Some(&caches), 7), ",0,1,0,1,1");
    assert_eq!(seen_by_caches(None, 7), "");
}

#[test]
fn a_region_with_modelled_cycles() {
    let machine = crate::machine::tests::a_machine();
    let mut model = MachineModel::new(&machine, LENGTH, Box::new(Unknown));
    let here = || machine_model::Place::Memory(0x1000);
    let site = || crate::block::Site {
        owner: 2,
        instruction: 0,
    };
    model.access(site, 0x1000, || 8, || false, here);
    let line = modelled_line(&[8, 16], true, Some(&model));
    // 250 an instruction, 1000 for 32 bytes, and what was modelled beside that: 19 instructions and 512 bytes here.
    assert!(line.contains(r#""cycles":21750,"functions""#), "{line}");
    assert!(
        line.contains(r#"["vfs_read","",10,2,1,65,512,245000,0,1,1,1,1,1,0]"#),
        "{line}"
    );
    assert!(line.contains(r#""cycles":[4800,9600]"#), "{line}");
    assert!(line.contains(r#""cycle_vector":[4800,9600]"#), "{line}");
}
