//! Functions that the call graph must know, by the names that the kernel gives them.

/// What is special about a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    Ordinary,
    /// The CPU jumps there: interrupt, exception, system call.
    Entry,
    /// Where a new task starts.
    NewTask,
    /// Changes to another task's stack.
    Switch,
    /// Pieces of code, one an interrupt: the CPU jumps into their middle, and they jump on to an entry.
    Stubs,
    /// Jumps on to the function that is called (`__x86_indirect_thunk_rax`).
    Thunk,
}

/// What the kernel calls them, on x86-64 from 5.10 on.
pub fn role(name: &[u8]) -> Role {
    let starts = |prefix: &[u8]| name.starts_with(prefix);
    match name {
        b"__switch_to_asm" => Role::Switch,
        b"ret_from_fork" | b"ret_from_fork_asm" => Role::NewTask,
        b"entry_SYSCALL_64"
        | b"entry_SYSCALL_compat"
        | b"entry_SYSENTER_compat"
        | b"entry_INT80_compat" => Role::Entry,
        b"irq_entries_start" | b"spurious_entries_start" => Role::Stubs,
        b"asm_common_interrupt" | b"asm_spurious_interrupt" => Role::Entry,
        _ if starts(b"__x86_indirect_thunk_") => Role::Thunk,
        _ if starts(b"asm_exc_") || starts(b"asm_sysvec_") => Role::Entry,
        _ => Role::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_by_name() {
        let table: &[(&[u8], Role)] = &[
            (b"entry_SYSCALL_64", Role::Entry),
            (b"entry_SYSCALL_64_after_hwframe", Role::Ordinary),
            (b"asm_exc_page_fault", Role::Entry),
            (b"asm_sysvec_apic_timer_interrupt", Role::Entry),
            (b"asm_load_gs_index", Role::Ordinary),
            (b"irq_entries_start", Role::Stubs),
            (b"__switch_to_asm", Role::Switch),
            (b"ret_from_fork_asm", Role::NewTask),
            (b"__x86_indirect_thunk_r15", Role::Thunk),
            (b"vfs_read", Role::Ordinary),
        ];
        for (name, expected) in table {
            assert_eq!(role(name), *expected);
        }
    }
}
