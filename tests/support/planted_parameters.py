"""Boot parameters that make a workload dearer in a function that is known, and some that do nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ktrial.model.profile import Profile
from ktrial.model.workload import WorkloadUse


@dataclass(frozen=True)
class Planted:
    """A boot parameter, and the functions that do what it asks for."""

    parameter: str
    instead_of: str
    workload: str
    functions: frozenset[str]
    given: Mapping[str, int | str] = field(default_factory=dict)
    """The workload's parameters."""

    def __str__(self) -> str:
        return f"{self.parameter}-{self.workload}"

    def profiles(self, profile: Callable[..., Profile]) -> tuple[Profile, Profile]:
        """Without the parameter and with it, by a function of a workload and boot parameters."""
        use = WorkloadUse(name=self.workload, parameters=dict(self.given))
        before, after = (filter(None, (one,)) for one in (self.instead_of, self.parameter))
        return profile(use, *before), profile(use, *after)


PLANTED = (
    # kernel/auditsc.c: what the first function that is met on the way into a system call writes down.
    Planted("audit=1", "", "syscall", frozenset({"__audit_syscall_entry"})),
    # mm/memcontrol.c: each page is charged to the program's control group, and counted there.
    Planted("cgroup_disable=memory", "", "mmap", frozenset({"__mod_memcg_lruvec_state"})),
    # mm/page_alloc.c: a page of the page cache is written wholly, and cleared before that all the same.
    Planted(
        "init_on_alloc=1",
        "init_on_alloc=0",
        "aio-stress",
        frozenset({"clear_page_erms", "clear_page_rep"}),
        {"size": 4, "stage": "write"},
    ),
    # kernel/sched/psi.c
    Planted("psi=1", "psi=0", "context-switch", frozenset({"psi_group_change"})),
    # arch/x86/entry: another page table on the way in, and again on the way out.
    Planted("pti=on", "pti=off", "syscall", frozenset({"entry_SYSCALL_64", "syscall_return_via_sysret"})),
    # security/selinux/hooks.c: asked for each directory on the way to the file.
    Planted("security=selinux", "", "open", frozenset({"selinux_inode_permission"})),
    # mm/slub.c: is an object that is freed among those that are free already?
    Planted("slub_debug=FZ", "", "fork", frozenset({"on_freelist"})),
    # arch/x86/lib/retpoline.S: calls through pointers go through it.
    Planted("spectre_v2=retpoline", "spectre_v2=off", "pipe", frozenset({"__x86_indirect_thunk_rax"})),
)

WITHOUT_EFFECT = tuple(
    Planted(parameter, "", "mmap", frozenset())
    for parameter in ("debug_pagealloc=on", "page_owner=on", "page_poison=1")
)
"""Debian's kernels are built without what they ask for. `mmap` allocates and frees pages."""
OPTIONS = {
    "debug_pagealloc=on": "CONFIG_DEBUG_PAGEALLOC",
    "page_owner=on": "CONFIG_PAGE_OWNER",
    "page_poison=1": "CONFIG_PAGE_POISONING",
}
"""What each of those needs."""

SAME_MEDIAN, SAME_MEAN = 1e-3, 5e-3
"""A parameter without effect makes the command line longer: all lies elsewhere, and the kernel's own work in
the background falls into other operations. Medians hardly move by that, means a little.
"""
