use super::*;

const CPUS: usize = 2;

/// A kernel: a caller, a lock in two parts, a thunk, the scheduler, the idle task.
struct Kernel {
    tally: Tally,
    caller: u32,
    lock: u32,
    slow: u32,
    thunk: u32,
    schedule: u32,
    idle: u32,
}

fn kernel() -> Kernel {
    let mut tally = Tally::new(CPUS);
    let mut row = |name: &[u8]| tally.row(class_of(name));
    let (caller, lock) = (row(b"vm_mmap_pgoff"), row(b"_raw_spin_lock"));
    let slow = row(b"native_queued_spin_lock_slowpath");
    let thunk = row(b"__x86_indirect_thunk_rax");
    let (schedule, idle) = (row(b"schedule"), row(b"schedule_idle"));
    tally.reset();
    Kernel {
        tally,
        caller,
        lock,
        slow,
        thunk,
        schedule,
        idle,
    }
}

impl Kernel {
    fn runs(&mut self, cpu: usize, row: u32, length: usize, entry: bool) {
        self.tally.block(cpu, Block::new(length, row, entry));
    }

    fn cell(&self, cpu: usize, row: u32) -> Cell {
        self.tally.region().cells[row as usize * CPUS + cpu]
    }
}

#[test]
fn names_tell_locks_sleeps_and_detours() {
    let table: [(&[u8], Class); 11] = [
        (b"_raw_spin_lock_irqsave", Class::Lock),
        (b"native_queued_spin_lock_slowpath", Class::Lock),
        (b"__mutex_lock.constprop.0", Class::Lock),
        (b"osq_lock", Class::Lock),
        (b"down", Class::Lock),
        (b"rwsem_down_write_slowpath", Class::Lock),
        (b"downgrade_write", Class::Other),
        (b"__schedule", Class::Sleep),
        (b"schedule_idle", Class::Idle),
        (b"__x86_indirect_thunk_array", Class::Detour),
        (b"do_anonymous_page", Class::Other),
    ];
    for (name, wanted) in table {
        assert_eq!(
            class_of(name),
            wanted,
            "{}",
            core::str::from_utf8(name).unwrap()
        );
    }
}

#[test]
fn a_block_is_one_word() {
    let block = Block::of(Block::new(512, 70_000, true).word());
    assert_eq!(
        (block.length(), block.row(), block.is_entry()),
        (512, 70_000, true)
    );
    assert!(!Block::new(1, 1, false).is_entry());
}

#[test]
fn instructions_and_entries_are_each_cpus_own() {
    let mut kernel = kernel();
    let caller = kernel.caller;
    kernel.runs(0, caller, 5, true);
    kernel.runs(0, caller, 7, false);
    kernel.runs(1, caller, 3, true);
    kernel.tally.end();
    let counted = [0, 1].map(|cpu| kernel.cell(cpu, caller));
    assert_eq!(
        counted.map(|cell| (cell.instructions, cell.entered)),
        [(12, 1), (3, 1)]
    );
}

#[test]
fn a_loop_that_pauses_waits_for_who_wanted_the_lock() {
    let mut kernel = kernel();
    let (caller, lock, slow, thunk) = (kernel.caller, kernel.lock, kernel.slow, kernel.thunk);
    for (row, entry) in [(caller, true), (thunk, true), (lock, true), (slow, true)] {
        kernel.runs(0, row, 10, entry);
    }
    kernel.tally.pause(0, 40);
    for at in [44, 48, 48 + TURN + 1] {
        kernel.tally.pause(0, at);
    }
    kernel.tally.end();
    let cell = kernel.cell(0, slow);
    assert_eq!(
        (cell.waited, cell.pauses),
        (8, 4),
        "the first and the last are no turns"
    );
    let region = kernel.tally.region();
    assert_eq!(region.waits.get(&(slow, caller)), Some(&(8, 4)));
}

#[test]
fn idle_time_belongs_to_where_the_last_task_went_to_sleep() {
    let mut kernel = kernel();
    let (caller, slow, schedule, idle) = (kernel.caller, kernel.slow, kernel.schedule, kernel.idle);
    for row in [caller, slow, schedule] {
        kernel.runs(1, row, 1, true);
    }
    kernel.tally.idle(1, 500);
    for row in [idle, schedule] {
        kernel.runs(1, row, 1, true);
    }
    kernel.tally.idle(1, 700);
    kernel.tally.end();
    let idle = &kernel.tally.region().idle;
    assert_eq!(
        idle.iter().collect::<Vec<_>>(),
        [(&((slow, caller), 1), &700)]
    );
}

#[test]
fn regions_are_summed_and_what_lies_between_is_left_out() {
    let mut kernel = kernel();
    let caller = kernel.caller;
    for _ in 0..2 {
        kernel.tally.begin();
        kernel.runs(0, caller, 5, true);
        kernel.tally.end();
        kernel.runs(0, caller, 100, false);
    }
    assert_eq!(kernel.cell(0, caller).instructions, 10);
    kernel.tally.begin();
    let late = kernel.tally.row(Class::Other);
    kernel.runs(1, late, 2, true);
    kernel.tally.end();
    assert_eq!(kernel.cell(1, late).instructions, 2);
    kernel.tally.reset();
    kernel.tally.end();
    assert_eq!(kernel.cell(1, late).instructions, 0);
}
