use super::*;
use crate::layout::LENGTH;

const USED: Used = Used {
    functions: 3,
    pages: 0,
    repeats: 0,
};

/// A guest that counts in its third counter.
struct Guest {
    counters: Vec<u64>,
    regions: Regions,
    written: Vec<Event>,
    task: u64,
}

impl Guest {
    fn new() -> Self {
        Self {
            counters: alloc::vec![5; LENGTH],
            regions: Regions::default(),
            written: Vec::new(),
            task: 0,
        }
    }

    fn runs(&mut self, instructions: u64, mark: Mark) -> &mut Self {
        self.counters[2] += instructions;
        let now = Moment {
            counters: &self.counters,
            used: USED,
            bytes: self.counters[2] * 8,
            modelled: self.counters[2] * 3,
            task: self.task,
        };
        let written = self.regions.mark(mark, now);
        self.written.extend(written.into_iter().flatten());
        self
    }

    /// The regions' operations, and how the run was marked.
    fn told(&self) -> (Vec<Vec<u64>>, Marking) {
        let mut regions = Vec::new();
        let mut marking = None;
        for event in &self.written {
            match event {
                Event::NextRun => {}
                Event::Region(closed) => regions.push(closed.operations.clone()),
                Event::RunEnd(told) => marking = Some(*told),
            }
        }
        (regions, marking.unwrap())
    }
}

fn run(marks: &[Mark]) -> (Vec<Vec<u64>>, Marking) {
    let mut guest = Guest::new();
    guest.runs(1, Mark::NextRun).runs(1, Mark::RunBegin);
    for mark in marks {
        guest.runs(10, *mark);
    }
    guest.runs(100, Mark::RunEnd).told()
}

#[test]
fn a_region_is_the_difference_of_its_ends() {
    let mut guest = Guest::new();
    guest.runs(0, Mark::Begin).runs(7, Mark::Operation);
    guest.counters[0] += 1;
    guest.runs(2, Mark::Operation).runs(4, Mark::End);
    let [Event::Region(closed)] = &guest.written[..] else {
        panic!("{:?}", guest.written);
    };
    assert_eq!(closed.counters[..4], [1, 0, 13, 0]);
    assert_eq!((closed.marks, closed.whole), (2, true));
    assert_eq!(closed.operations, [7, 3]);
    assert_eq!(closed.bytes, [56, 16]);
    assert_eq!(
        (closed.modelled, &closed.each_modelled[..]),
        (39, &[21, 6][..])
    );
}

#[test]
fn a_run_without_regions_is_one_operation() {
    assert_eq!(
        run(&[]),
        (alloc::vec![alloc::vec![100]], Marking::default())
    );
}

#[test]
fn a_programs_regions_take_the_place_of_the_run() {
    let marks = [
        Mark::Begin,
        Mark::Operation,
        Mark::End,
        Mark::Begin,
        Mark::End,
    ];
    let (regions, marking) = run(&marks);
    assert_eq!(regions, [alloc::vec![10], alloc::vec![]]);
    let expected = Marking {
        regions: 2,
        ..Marking::default()
    };
    assert_eq!(marking, expected);
}

#[test]
fn wrong_marks_are_told() {
    let begun_twice = [Mark::Begin, Mark::Begin, Mark::End, Mark::End];
    let (_, marking) = run(&begun_twice);
    assert_eq!((marking.nested, marking.loose_ends), (1, 1));
    let (regions, marking) = run(&[Mark::Begin, Mark::Operation]);
    assert_eq!((regions.len(), marking.unclosed), (0, 1));
    let (regions, marking) = run(&[Mark::Operation]);
    assert_eq!((regions.len(), marking.loose_operations), (1, 1));
}

#[test]
fn marks_of_another_task_are_told() {
    let mut guest = Guest::new();
    guest.runs(0, Mark::Begin).task = 1;
    guest.runs(0, Mark::Operation).runs(0, Mark::End);
    assert_eq!(guest.runs(0, Mark::RunEnd).told().1.foreign, 2);
}

#[test]
fn what_is_not_kept_is_told() {
    let mut guest = Guest::new();
    guest.regions.kept = MOST_OPERATIONS - 1;
    guest.runs(0, Mark::Begin);
    guest.runs(1, Mark::Operation).runs(1, Mark::Operation);
    guest.runs(0, Mark::End).runs(0, Mark::RunEnd);
    let (regions, marking) = guest.told();
    assert_eq!((regions, marking.dropped), (alloc::vec![alloc::vec![1]], 1));
    let mut guest = Guest::new();
    guest.regions.marking.regions = MOST_REGIONS;
    guest.runs(0, Mark::Begin).runs(0, Mark::End);
    assert_eq!(guest.written, []);
}

#[test]
fn nothing_is_kept_of_the_run_before() {
    let mut guest = Guest::new();
    guest.runs(0, Mark::Begin).runs(0, Mark::Begin);
    guest.runs(0, Mark::NextRun).runs(0, Mark::RunEnd);
    assert_eq!(guest.told().1, Marking::default());
}

#[test]
fn a_region_without_an_end_is_not_whole() {
    let mut guest = Guest::new();
    guest.runs(0, Mark::Begin);
    assert!(
        !guest
            .regions
            .finish(&guest.counters, guest.counters[2] * 3)
            .unwrap()
            .whole
    );
    let mut guest = Guest::new();
    guest.runs(0, Mark::RunBegin);
    assert!(
        !guest
            .regions
            .finish(&guest.counters, guest.counters[2] * 3)
            .unwrap()
            .whole
    );
    assert_eq!(Regions::default().finish(&guest.counters, 0), None);
}
