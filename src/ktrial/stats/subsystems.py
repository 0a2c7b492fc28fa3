"""Which part of the kernel a function belongs to, told by how its name begins.

Distributions ship no source paths with their symbols. Kernel functions, though, are named for their
subsystem; what this table does not know is `other`, and never guessed. docs/explain.md shows it.
"""

OTHER = "other"
USER = "user program"

_BEGINNINGS = {
    "string operations": """
        memset memcpy memmove memcmp memchr clear_page copy_page_to_iter copy_page_from_iter copy_mc
        copy_user rep_movs rep_stos strncpy strscpy strlen strcmp strncmp clear_user copy_from_user
        copy_to_user iov_iter copy_page_regs copy_page_rep clear_pages
    """,
    "maple tree": """
        mas_ mt_ mtree_ mab_ mte_ ma_ mast_ mni_ mns_
    """,
    "slab": """
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
        pte_ pmd_ pud_ p4d_ pgd_ set_pte copy_page_range copy_pte unmap_page_range zap_
        free_pgtables free_pgd flush_tlb tlb_ native_flush_tlb native_tlb native_set_p switch_mm
        load_new_mm ptep_ pmdp_ change_p alloc_set_pte vm_normal_page vm_normal_folio unmap_vmas
        unmap_region unmap_single_vma arch_check_zapped
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
        rcu_ call_rcu srcu kvfree_call_rcu note_gp invoke_rcu synchronize_rcu
    """,
    "processes": """
        copy_process kernel_clone do_fork dup_task copy_files copy_mm copy_sighand copy_signal
        copy_creds copy_namespaces copy_thread copy_semundo copy_fs do_exit release_task wait_task
        do_wait exit_ free_task put_task alloc_pid free_pid put_pid pid_ find_get_pid attach_pid
        detach_pid acct_ taskstats begin_new_exec bprm load_elf exec_ do_execve arch_dup fpu_
        save_fpregs restore_fpregs switch_fpu fpregs cgroup_ task_ ptrace delayed_put_task kthread
        audit_ prepare_creds cred put_cred uprobe sched_cgroup_fork user_namespace change_pid tsk_
    """,
    "signals": """
        signal send_signal do_notify_parent get_signal do_send sigqueue recalc_sig collect_signal
        sigprocmask flush_sig force_sig complete_signal prepare_signal setup_rt_frame
        set_current_blocked
    """,
    "timers": """
        hrtimer timer tick_ ktime timekeeping clockevents run_timer update_wall_time posix_ read_tsc
        lapic run_local_timers update_process_times timerqueue do_timerfd clocksource
    """,
    "interrupts": """
        irq handle_irq softirq do_softirq handle_softirqs asm_ sysvec apic x2apic common_interrupt
        handle_edge handle_level tasklet ipi_ smp_call generic_smp native_apic raise_softirq
    """,
    "entry and exit": """
        entry_ do_syscall syscall_ x64_sys ia32_sys sys_ se_sys do_sys exit_to_user arch_exit
        error_entry error_return paranoid ret_from irqentry x86_indirect x86_return x64_sys_call
        swapgs sync_regs common_interrupt_return native_irq_return fixup_bad_iret native_iret
    """,
    "file systems": """
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
    "futexes": """
        futex get_futex hash_futex
    """,
    "security": """
        security_ apparmor aa_ selinux cap_ tomoyo bpf_lsm landlock lsm_ yama_ ns_capable capable
    """,
    "work queues": """
        queue_work process_one_work worker_ insert_work wq_ queue_delayed kick_pool pwq_
        wake_up_worker
    """,
    "wait queues": """
        wake_up prepare_to_wait finish_wait add_wait remove_wait autoremove_wake init_wait
        default_wake pollwake complete wait_for_completion swake
    """,
    "bit maps and lists": """
        find_next find_first find_last bitmap_ cpumask_ list_ rb_ hweight radix_tree idr_ ida_
        interval_tree plist_ llist_
    """,
    "performance events": """
        perf_ kprobe_
    """,
}

PREFIXES = {name: tuple(text.split()) for name, text in _BEGINNINGS.items()}
"""Subsystem → how its functions' names begin, without leading `_`. The longest beginning decides."""

_BY_PREFIX = {prefix: name for name, prefixes in PREFIXES.items() for prefix in prefixes}
_LONGEST = max(map(len, _BY_PREFIX))


def subsystem(function: str, module: str = "") -> str:
    """A function's subsystem; that of a module's function is the module."""
    if module:
        return f"module {module}"
    bare = function.lstrip("_")
    for length in range(min(_LONGEST, len(bare)), 0, -1):
        if found := _BY_PREFIX.get(bare[:length]):
            return found
    return OTHER
