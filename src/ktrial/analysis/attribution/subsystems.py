"""Which part of the kernel a function belongs to: by its file, by how its name begins, by its directory.

The kernel image names the source of most functions (ktrial.kernels.symbols). Where a file
belongs to one subsystem, it decides. Large files hold several (`mm/memory.c`: page faults and page tables):
there, and where no file is known, the beginning of the name does, as kernel functions are named for their
subsystem; then the directory. What none of the three knows is `other`, and never guessed. docs/explain.md
shows it.
"""

import re
from functools import lru_cache

from ktrial.model.base import Model
from ktrial.model.profile import FunctionCount, RegionCounts

OTHER = "other"
USER = "user program"
LOCKS = "locks"
_BEGINNINGS = {
    "string operations": """
        memset memcpy memmove memcmp memchr clear_page clear_highpage copy_page_to_iter
        copy_page_from_iter copy_mc copy_user rep_movs rep_stos strncpy strscpy strlen strcmp strncmp
        clear_user copy_from_user
        copy_to_user iov_iter copy_page_regs copy_page_rep clear_pages copy_to_iter copy_from_iter get_user_
        put_user_ copy_page
    """,
    "maple tree": """
        mas_ mt_ mtree_ mab_ mte_ ma_ mast_ mni_ mns_
    """,
    "slab": """
        cache_from_obj build_detached_freelist cmpxchg_double_slab pcs_ barn_
        kmem_cache kmalloc kfree kzalloc slab_ slub_ memcg_slab memcg_alloc_slab put_cpu_partial
        get_partial new_slab allocate_slab free_slab discard_slab setup_object kvfree kvmalloc
        krealloc should_failslab refill_obj_stock obj_cgroup free_to_partial deactivate_slab
        init_object check_object check_bytes on_freelist
    """,
    "page allocator": """
        alloc_pages get_page_from_freelist free_unref rmqueue free_pcp free_pages prep_new_page
        kernel_init_pages kernel_init_free_pages free_one_page free_one_folio post_alloc_hook
        get_pfnblock set_pfnblock zone_watermark cond_accept_memory prep_compound put_page free_page
        get_free_page get_zeroed_page free_frozen alloc_frozen bad_range free_tail_page
    """,
    "page tables": """
        do_set_pte mksaveddirty track_pfn pte pmd pud p4d pgd map_anon_folio_pte
        pte_ pmd_ pud_ p4d_ pgd_ set_pte copy_page_range copy_pte unmap_page_range zap_
        free_pgtables free_pgd flush_tlb tlb_ native_flush_tlb native_tlb native_set_p switch_mm
        load_new_mm ptep_ pmdp_ change_p alloc_set_pte vm_normal_page vm_normal_folio unmap_vmas
        unmap_region unmap_single_vma arch_check_zapped pfn_pte set_p4d
    """,
    "page faults": """
        handle_mm_fault do_user_addr_fault exc_page_fault asm_exc_page_fault do_fault
        do_anonymous_page wp_page_copy do_wp_page finish_fault access_error fault_
        lock_mm_and_find_vma lock_vma_under_rcu do_cow_fault do_read_fault do_shared_fault
        do_swap_page next_uptodate filemap_map_pages filemap_fault wp_page_reuse
    """,
    "memory control groups": """
        mem_cgroup memcg uncharge_ charge_ try_charge count_memcg mod_memcg mod_lruvec lruvec_stat
        lock_page_memcg unlock_page_memcg refill_stock consume_stock page_counter cgroup_rstat
        css_rstat mod_objcg get_obj_cgroup drain_obj
    """,
    "mm": """
        compound_head PageHuge PageHeadHuge do_mas_ vms_ tear_down_vmas may_expand_vm
        find_mergeable can_vma_merge hugepage_ ksm_ nr_to_section userfaultfd
        dup_userfaultfd arch_vma_access is_vmalloc trace_rss check_spread
        folio page_ lru_ vma_ vm_ mmap munmap do_mmap do_munmap do_vmi mm_ mmput mprotect madvise
        anon_vma find_vma unlink_anon unlink_file_vma dup_mm exit_mmap insert_vm brk do_brk
        release_pages pagevec rmap filemap xas_ xa_ shmem vmacache zone mod_zone mod_node inc_zone
        dec_zone inc_numa swap free_swap workingset get_user_pages gup_ khugepaged remove_vma
        get_vma_policy policy_node mpol_ mremap vmf_ security_vm add_mm_counter sync_mm_rss
        mark_page_accessed lock_page unlock_page get_unmapped vmalloc vfree vunmap vmap
        balance_dirty remove_shared_vm mlock_ munlock_ untrack_pfn put_anon_vma
        get_mem_cgroup_from_mm set_mm_exe
    """,
    "per-CPU memory": """
        pcpu_ percpu_ free_percpu alloc_percpu
    """,
    "scheduler": """
        css_set_move record_times post_init_entity init_entity remove_entity_load
        detach_task_cfs update_sched init_numa_balancing thread_group_cputime
        cputime_adjust idle_cpu calc_global_load arch_scale_ check_cfs_rq scx_ init_scx
        start_dl_timer kick_process trigger_load_balance dup_user_cpus migrate_ mm_cid
        sched_ schedule enqueue_ dequeue_ pick_ update_curr update_load update_cfs update_rq
        update_entity update_deadline update_min_vruntime update_se place_entity try_to_wake ttwu
        wake_up_new_task check_preempt wakeup_preempt select_task select_idle set_next put_prev
        task_tick task_fork finish_task_switch switch_to prepare_task_switch context_switch resched
        cpuacct psi_ avg_vruntime vruntime entity_ attach_entity detach_entity account_ cond_resched
        preempt_ reweight rq_ activate_task deactivate_task yield_ wakeup_ propagate_entity hrtick
        balance_fair load_balance newidle dl_server init_dl_ calc_delta clear_buddies
        requeue_delayed
    """,
    "locks": """
        raw_spin native_queued_spin queued_ mutex down_ up_ rwsem rt_mutex osq_ raw_read raw_write
        percpu_down percpu_up lockref seqcount ww_mutex pv_queued init_rwsem rwlock
    """,
    "RCU": """
        finish_rcuwait rcuwait
        rcu_ call_rcu srcu kvfree_call_rcu note_gp invoke_rcu synchronize_rcu
    """,
    "processes": """
        wait_consider_task kernel_wait4 mmdrop do_group_exit map_id switch_task_namespaces
        get_task_pid pidfs inc_rlimit dec_rlimit is_rlimit try_release_thread_stack xfd_
        ldt_ switch_ldt free_ldt current_save_fsgs copy_fpregs copy_kernel_to_fpregs
        get_xsave native_load_tls flush_ptrace cr4_ rdgsbase wrgsbase cpu_cgroup_fork
        key_put
        copy_process kernel_clone do_fork dup_task copy_files copy_mm copy_sighand copy_signal
        copy_creds copy_namespaces copy_thread copy_semundo copy_fs do_exit release_task wait_task
        do_wait exit_ free_task put_task alloc_pid free_pid put_pid pid_ find_get_pid attach_pid
        detach_pid acct_ taskstats begin_new_exec bprm load_elf exec_ do_execve arch_dup fpu_
        save_fpregs restore_fpregs switch_fpu fpregs cgroup_ task_ ptrace delayed_put_task kthread
        audit_ prepare_creds cred put_cred uprobe sched_cgroup_fork user_namespace change_pid tsk_
    """,
    "signals": """
        lock_task_sighand kill_something
        signal send_signal do_notify_parent get_signal do_send sigqueue recalc_sig collect_signal
        sigprocmask flush_sig force_sig complete_signal prepare_signal setup_rt_frame
        set_current_blocked
    """,
    "timers": """
        run_posix_cpu_timers mod_timer lock_timer_base detach_if_pending calc_wheel
        next_timer_interrupt ntp_ update_vsyscall update_fast_timekeeper tmigr_
        pit_next_event do_timer profile_tick get_nohz_timer
        hrtimer timer tick_ ktime timekeeping clockevents run_timer update_wall_time posix_ read_tsc
        native_sched_clock lapic run_local_timers update_process_times timerqueue do_timerfd clocksource
    """,
    "interrupts": """
        note_interrupt
        irq handle_irq softirq do_softirq handle_softirqs asm_ sysvec apic x2apic common_interrupt
        handle_edge handle_level tasklet ipi_ smp_call generic_smp native_apic raise_softirq
    """,
    "entry and exit": """
        amd_clear_divider restore_regs_and_return early_xen_iret fixup_exception
        kernelmode_fixup
        entry_ do_syscall syscall_ x64_sys ia32_sys sys_ se_sys do_sys exit_to_user arch_exit rseq_
        error_entry error_return paranoid ret_from irqentry x86_indirect x86_return x64_sys_call
        swapgs sync_regs common_interrupt_return native_irq_return fixup_bad_iret native_iret
    """,
    "file systems": """
        fdget fdput current_time timestamp_truncate make_vfs kill_fasync dnotify
        mark_inode_dirty generic_update_time inode_needs_update
        vfs_ path_ link_path lookup_ walk_component d_ dput dget dentry iput iget inode fput fget
        fd_ filp alloc_file alloc_empty_file do_open open_ file_ new_sync rw_verify generic_file
        generic_perform ext4_ jbd2 xfs_ btrfs_ tmpfs ramfs simple_ ksys_ pipe_ anon_pipe step_into
        getname putname mnt legitimize terminate_walk set_root may_open do_dentry eventpoll ep_
        poll_ select_ eventfd locks_ fsnotify touch_atime atime proc_ seq_ kernfs dup_fd close_
        do_close put_files fscrypt bio_ submit_bio blk_ do_filp complete_walk inode_permission
        generic_permission strncpy_from_user cp_new_stat statx unlink
    """,
    "network": """
        tcp_ udp_ ip_ ip6_ inet sock skb_ sk_ net_ netif dev_ unix_ neigh dst_ fib_ nf_ kfree_skb
        alloc_skb napi build_skb loopback qdisc process_backlog consume_skb release_sock lock_sock
        ipv4 ipv6 csum eth_
    """,
    "random numbers": """
        blake2s chacha get_random add_device_randomness add_interrupt_randomness fast_mix crng_
        extract_entropy
    """,
    "control groups": """
        css_ blkcg_ cpuset_ pids_
    """,
    "tracing": """
        trace_ ftrace_ tracing_ ring_buffer [generated:
    """,
    "BPF": """
        bpf_ [bpf:
    """,
    "block devices": """
        get_task_ioprio ioprio_
    """,
    "kernel core": """
        static_key jump_label notifier_call_chain raw_notifier blocking_notifier atomic_notifier bsearch
    """,
    "futexes": """
        futex get_futex hash_futex
    """,
    "security": """
        ima_ ipe_
        security_ apparmor aa_ selinux cap_ tomoyo bpf_lsm landlock lsm_ yama_ ns_capable capable
    """,
    "work queues": """
        cancel_work flush_work enable_work disable_work try_to_grab_pending
        queue_work process_one_work worker_ insert_work wq_ queue_delayed kick_pool pwq_
        wake_up_worker
    """,
    "wait queues": """
        prepare_to_swait finish_swait
        wake_up prepare_to_wait finish_wait add_wait remove_wait autoremove_wake init_wait
        default_wake pollwake complete wait_for_completion swake
    """,
    "bit maps and lists": """
        delete_node
        find_next find_first find_last bitmap_ cpumask_ list_ rb_ hweight radix_tree idr_ ida_
        interval_tree plist_ llist_
    """,
    "performance events": """
        perf_ kprobe_
    """,
}
BY_FILE = {
    "maple tree": "lib/maple_tree.c",
    "slab": "mm/slub.c mm/slab.c mm/slab_common.c mm/mempool.c mm/kasan/ mm/kfence/",
    "page allocator": "mm/page_alloc.c mm/compaction.c mm/page_isolation.c mm/show_mem.c",
    "page tables": """
        arch/x86/mm/pgtable.c arch/x86/mm/tlb.c mm/mmu_gather.c mm/pgtable-generic.c mm/mprotect.c
        arch/x86/mm/pat/
    """,
    "page faults": "arch/x86/mm/fault.c mm/userfaultfd.c",
    "memory control groups": """
        mm/memcontrol.c mm/memcontrol-v1.c mm/page_counter.c mm/swap_cgroup.c mm/hugetlb_cgroup.c
    """,
    "per-CPU memory": "mm/percpu.c mm/percpu-vm.c mm/percpu-stats.c",
    "wait queues": """
        kernel/sched/wait.c kernel/sched/completion.c kernel/sched/swait.c kernel/sched/wait_bit.c
    """,
    "scheduler": "kernel/sched/",
    "locks": "kernel/locking/ lib/lockref.c",
    "RCU": "kernel/rcu/",
    "processes": """
        kernel/fork.c kernel/exit.c kernel/pid.c kernel/cred.c kernel/nsproxy.c kernel/kthread.c fs/exec.c
        fs/binfmt_elf.c fs/binfmt_script.c kernel/ptrace.c kernel/umh.c kernel/taskstats.c kernel/acct.c
        arch/x86/kernel/process.c arch/x86/kernel/process_64.c arch/x86/kernel/fpu/ kernel/user.c
        kernel/ucount.c kernel/delayacct.c
    """,
    "signals": "kernel/signal.c arch/x86/kernel/signal.c arch/x86/kernel/signal_64.c fs/signalfd.c",
    "timers": """
        kernel/time/ lib/timerqueue.c arch/x86/kernel/tsc.c fs/timerfd.c drivers/clocksource/
        arch/x86/kernel/hpet.c
    """,
    "interrupts": "kernel/irq/ kernel/softirq.c arch/x86/kernel/apic/ arch/x86/kernel/irq.c kernel/smp.c",
    "entry and exit": "arch/x86/entry/ kernel/entry/ kernel/rseq.c arch/x86/kernel/traps.c",
    "futexes": "kernel/futex/ kernel/futex.c",
    "work queues": "kernel/workqueue.c",
    "string operations": "lib/iov_iter.c lib/string.c lib/usercopy.c lib/strncpy_from_user.c mm/usercopy.c",
    "bit maps and lists": """
        lib/xarray.c lib/radix-tree.c lib/rbtree.c lib/idr.c lib/find_bit.c lib/bitmap.c lib/cpumask.c
        lib/llist.c lib/plist.c lib/list_sort.c lib/list_debug.c lib/rhashtable.c lib/percpu_counter.c
        lib/percpu-refcount.c lib/refcount.c lib/hweight.c lib/scatterlist.c
    """,
    "control groups": "kernel/cgroup/ block/blk-cgroup.c",
    "performance events": "kernel/events/ arch/x86/events/ kernel/kprobes.c",
    "tracing": "kernel/trace/ kernel/tracepoint.c",
    "BPF": "kernel/bpf/ net/core/filter.c",
    "audit": "kernel/audit.c kernel/auditsc.c",
    "random numbers": "drivers/char/random.c lib/crypto/chacha lib/crypto/blake2s lib/chacha.c",
    "io_uring": "io_uring/ fs/io_uring.c",
    "IPC": "ipc/",
    "block devices": "block/",
    "network": "net/",
    "security": "security/",
}
"""Source files, or how their paths begin, that belong to one subsystem. The longest decides."""
BY_DIRECTORY = {
    "mm": "mm/ arch/x86/mm/",
    "file systems": "fs/",
    "string operations": "arch/x86/lib/",
    "kernel core": "kernel/ init/ arch/x86/kernel/ arch/x86/",
    "cryptography": "crypto/ lib/crypto/ arch/x86/crypto/",
    "library": "lib/",
    "drivers": "drivers/ sound/",
    "virtualization": "virt/ arch/x86/kvm/ arch/x86/xen/ arch/x86/hyperv/",
}
"""What decides where neither the file nor the function's name does."""
PREFIXES = {name: tuple(text.split()) for name, text in _BEGINNINGS.items()}
"""Subsystem → how its functions' names begin, without leading `_`. The longest beginning decides."""


def _by_beginning(table: dict[str, str]) -> dict[str, str]:
    return {beginning: name for name, text in table.items() for beginning in text.split()}


_BY_PREFIX = _by_beginning(_BEGINNINGS)
_BY_FILE = _by_beginning(BY_FILE)
_BY_DIRECTORY = _by_beginning(BY_DIRECTORY)


@lru_cache(maxsize=65536)
def subsystem(function: str, module: str = "", file: str = "") -> str:
    """A function's subsystem; that of a module's function is the module.

    `file`: its source (`mm/slub.c`), or its directory (`mm/`), where that is known.
    """
    if module:
        return f"module {module}"
    return (
        _longest(file, _BY_FILE)
        or _longest(function.lstrip("_"), _BY_PREFIX)
        or _longest(file, _BY_DIRECTORY)
        or OTHER
    )


def _longest(text: str, table: dict[str, str]) -> str:
    for length in range(len(text), 0, -1):
        if name := table.get(text[:length]):
            return name
    return ""


# Ways into the kernel: system calls, exceptions, interrupts, told by the function that each begins with.
#
# Source: arch/x86/entry/entry_64.S and arch/x86/include/asm/idtentry.h of Linux 5.8 and later. Each is the
# root of a tree of calls of its own, so that its inclusive count is what it cost, whatever it interrupted.

_KINDS = (
    (re.compile(r"entry_SYSCALL_64$"), "system call"),
    (re.compile(r"(?:entry_(?:SYSCALL|SYSENTER|INT80)_compat|asm_int80_emulation)$"), "32-bit system call"),
    (re.compile(r"asm_exc_(.+)$"), "exception"),
    (re.compile(r"asm_sysvec_(.+)$"), "interrupt"),
    (re.compile(r"asm_(common|spurious)_interrupt$"), "interrupt"),
)
_SYSTEM_CALL = re.compile(r"__(?:x64|ia32)_(?:compat_)?sys_(.+)$")


class KernelEntry(Model):
    """One way into the kernel."""

    name: str
    """`system call`, `exception page_fault`, `interrupt apic_timer_interrupt`; `fork`: one system call."""
    function: str
    """The function that it begins with."""
    entered: int
    """How often, in the region."""
    inclusive: int | None
    """Instructions of it and all that it called; None where calls were not followed."""
    system_call: bool = False
    """One system call by name: a part of the entry `system call`."""


def kernel_entries(region: RegionCounts) -> tuple[KernelEntry, ...]:
    """The ways that were taken, the costliest first; system calls by name come after all others."""
    taken = [entry for function in region.functions if function.entered and (entry := _entry(function))]
    return tuple(
        sorted(taken, key=lambda one: (one.system_call, -(one.inclusive or 0), -one.entered, one.name))
    )


def _entry(function: FunctionCount) -> KernelEntry | None:
    if function.module:
        return None
    if call := _SYSTEM_CALL.match(function.symbol):
        return _made(call[1], function, system_call=True)
    for pattern, kind in _KINDS:
        if met := pattern.match(function.symbol):
            return _made(" ".join((kind, *met.groups())), function, system_call=False)
    return None


def _made(name: str, function: FunctionCount, *, system_call: bool) -> KernelEntry:
    return KernelEntry(
        name=name,
        function=function.symbol,
        entered=function.entered,
        inclusive=function.inclusive,
        system_call=system_call,
    )
