"""Five branches of eight patches as people write them, each of another area, in two configurations.

No effect, a micro-optimisation, an added check, an option that is on by default, data, a comment, a header,
and a revert: each has the line that it should have in `guest`, and in what Debian ships. `guest` has no
SECURITY, so that most of the branch of security/ is compiled in Debian's configuration only.
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.support.series import Planted, run

pytestmark = [pytest.mark.slow, pytest.mark.guest, pytest.mark.timeout(12 * 3600)]
GUEST, DEBIAN = "guest", "debian:6.1"
KINDS = ("no effect", "micro", "check", "option", "data", "comment", "header", "revert")
NO_CODE = {"not compiled", "same image"}


@dataclass(frozen=True)
class Change:
    """Text that a file has once, and what comes in its place."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Branch:
    """One area's."""

    workload: str
    function: str
    no_effect: Change
    micro: Change
    check: Change
    work: Change
    """What the option switches on, with `COUNT` in place of the counting."""
    data: Change
    variable: str
    comment: Change
    header: Change
    kconfig: str = "init/Kconfig"
    menu: str = 'menu "General setup"\n'
    needs: str = ""


MM = Branch(
    "mmap",
    "do_mmap",
    Change(
        "mm/mmap.c",
        "\tvm_flags_t vm_flags;\n\tint pkey = 0;\n\n\tvalidate_mm(mm);\n",
        "\tint pkey = 0;\n\tvm_flags_t vm_flags;\n\n\tvalidate_mm(mm);\n",
    ),
    Change("mm/mmap.c", "\t*populate = 0;\n\n\tif (!len)\n", "\t*populate = 0;\n\n\tif (unlikely(!len))\n"),
    Change(
        "mm/mmap.c",
        "\t/* Too many mappings? */\n",
        "\tif (unlikely(READ_ONCE(mm->total_vm) > (1UL << 50)))\n\t\treturn -ENOMEM;\n\n"
        "\t/* Too many mappings? */\n",
    ),
    Change("mm/mmap.c", "\t/* offset overflow? */\n", "COUNT\t/* offset overflow? */\n"),
    Change(
        "mm/util.c", "__read_mostly = DEFAULT_MAX_MAP_COUNT;", "__read_mostly = DEFAULT_MAX_MAP_COUNT + 1;"
    ),
    "sysctl_max_map_count",
    Change(
        "mm/mmap.c",
        "\t/* Obtain the address to map to. we verify (or select) it and ensure\n",
        "\t/* Obtain the address to map to: it is verified (or selected) to ensure\n",
    ),
    Change(
        "mm/internal.h",
        "\treturn (void *)(mapping & ~PAGE_MAPPING_FLAGS);",
        "\treturn (void *)(mapping - (mapping & PAGE_MAPPING_FLAGS));",
    ),
)
FS = Branch(
    "pipe",
    "pipe_write",
    Change(
        "fs/pipe.c",
        "\tssize_t chars;\n\tbool was_empty = false;\n\tbool wake_next_writer",
        "\tbool was_empty = false;\n\tssize_t chars;\n\tbool wake_next_writer",
    ),
    Change(
        "fs/pipe.c",
        "\t__pipe_lock(pipe);\n\n\tif (!pipe->readers) {\n\t\tsend_sig(SIGPIPE, current",
        "\t__pipe_lock(pipe);\n\n\tif (unlikely(!pipe->readers)) {\n\t\tsend_sig(SIGPIPE, current",
    ),
    Change(
        "fs/pipe.c",
        "\t/* Null write succeeds. */\n",
        "\tif (unlikely(READ_ONCE(pipe->ring_size) > (1U << 20)))\n\t\treturn -EINVAL;\n\n"
        "\t/* Null write succeeds. */\n",
    ),
    Change(
        "fs/pipe.c",
        "\tif (unlikely(total_len == 0))\n\t\treturn 0;\n\n\t__pipe_lock(pipe);\n",
        "\tif (unlikely(total_len == 0))\n\t\treturn 0;\n\nCOUNT\t__pipe_lock(pipe);\n",
    ),
    Change("fs/pipe.c", "pipe_max_size = 1048576;", "pipe_max_size = 2097152;"),
    "pipe_max_size",
    Change(
        "fs/pipe.c", "\t * If it wasn't empty we try to merge", "\t * Where it was not empty we try to merge"
    ),
    Change("include/linux/pipe_fs_i.h", "\treturn head == tail;\n", "\treturn !(head - tail);\n"),
)
NET = Branch(
    "socketpair",
    "unix_stream_sendmsg",
    Change(
        "net/unix/af_unix.c",
        "\tstruct sk_buff *skb;\n\tint sent = 0;\n\tstruct scm_cookie scm;\n\tbool fds_sent",
        "\tint sent = 0;\n\tstruct sk_buff *skb;\n\tstruct scm_cookie scm;\n\tbool fds_sent",
    ),
    Change(
        "net/unix/af_unix.c",
        "\t\terr = -ENOTCONN;\n\t\tother = unix_peer(sk);\n\t\tif (!other)\n\t\t\tgoto out_err;\n\t}\n\n"
        "\tif (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN)\n\t\tgoto pipe_err;\n\n\twhile (sent < len) {\n",
        "\t\terr = -ENOTCONN;\n\t\tother = unix_peer(sk);\n"
        "\t\tif (unlikely(!other))\n\t\t\tgoto out_err;\n\t}\n\n"
        "\tif (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN)\n\t\tgoto pipe_err;\n\n\twhile (sent < len) {\n",
    ),
    Change(
        "net/unix/af_unix.c",
        "\t\t/* Keep two messages in the pipe so it schedules better */\n"
        "\t\tsize = min_t(int, size, (sk->sk_sndbuf >> 1) - 64);\n\n\t\t/* allow",
        "\t\tif (unlikely(READ_ONCE(sk->sk_sndbuf) < 0))\n\t\t\tgoto out_err;\n\n"
        "\t\t/* Keep two messages in the pipe so it schedules better */\n"
        "\t\tsize = min_t(int, size, (sk->sk_sndbuf >> 1) - 64);\n\n\t\t/* allow",
    ),
    Change(
        "net/unix/af_unix.c",
        "\t\t/* Only send the fds in the first buffer */\n\t\terr = unix_scm_to_skb(&scm, skb, !fds_sent);\n",
        "COUNT\t\t/* Only send the fds in the first buffer */\n"
        "\t\terr = unix_scm_to_skb(&scm, skb, !fds_sent);\n",
    ),
    Change(
        "net/core/sock.c",
        "sysctl_wmem_max __read_mostly = SK_WMEM_MAX;",
        "sysctl_wmem_max __read_mostly = 2 * SK_WMEM_MAX;",
    ),
    "sysctl_wmem_max",
    Change(
        "net/unix/af_unix.c",
        "\t\t/* allow fallback to order-0 allocations */\n\t\tsize = min_t(int, size, SKB_MAX_HEAD(0) + UNIX",
        "\t\t/* order-0 allocations will do */\n\t\tsize = min_t(int, size, SKB_MAX_HEAD(0) + UNIX",
    ),
    Change(
        "include/net/af_unix.h",
        "extern unsigned int unix_tot_inflight;\n",
        "/* Of all users. */\nextern unsigned int unix_tot_inflight;\n",
    ),
)
SCHED = Branch(
    "fork",
    "sched_fork",
    Change(
        "kernel/sched/core.c",
        "\tstruct rq_flags rf;\n\tstruct rq *rq;\n\n\trq = this_rq_lock_irq(&rf);\n\n\tschedstat_inc(rq->yld",
        "\tstruct rq *rq;\n\tstruct rq_flags rf;\n\n\trq = this_rq_lock_irq(&rf);\n\n\tschedstat_inc(rq->yld",
    ),
    Change(
        "kernel/sched/core.c",
        "\tif (unlikely(p->sched_reset_on_fork)) {\n\t\tif (task_has_dl_policy(p) ||",
        "\tif (p->sched_reset_on_fork) {\n\t\tif (task_has_dl_policy(p) ||",
    ),
    Change(
        "kernel/sched/core.c",
        "\tp->prio = current->normal_prio;\n\n\tuclamp_fork(p);\n",
        "\tif (unlikely(READ_ONCE(current->normal_prio) > MAX_PRIO))\n\t\treturn -EAGAIN;\n"
        "\tp->prio = current->normal_prio;\n\n\tuclamp_fork(p);\n",
    ),
    Change(
        "kernel/sched/core.c",
        "\tp->__state = TASK_NEW;\n\n\t/*\n\t * Make sure we do not leak PI",
        "\tp->__state = TASK_NEW;\n\nCOUNT\t/*\n\t * Make sure we do not leak PI",
    ),
    Change(
        "kernel/sched/rt.c", "int sysctl_sched_rt_runtime = 950000;", "int sysctl_sched_rt_runtime = 940000;"
    ),
    "sysctl_sched_rt_runtime",
    Change(
        "kernel/sched/core.c",
        "\t * Revert to default priority/policy on fork if requested.\n\t */\n\tif (",
        "\t * Take the default priority/policy on fork if requested.\n\t */\n\tif (",
    ),
    Change(
        "kernel/sched/sched.h",
        "\treturn p->on_rq == TASK_ON_RQ_QUEUED;\n",
        "\treturn !(p->on_rq - TASK_ON_RQ_QUEUED);\n",
    ),
)
SECURITY = Branch(
    "pipe",
    "security_file_permission",
    Change(
        "security/security.c",
        "\tint ret;\n\n\tret = call_int_hook(file_permission, 0, file, mask);\n",
        "\tint ret = call_int_hook(file_permission, 0, file, mask);\n\n",
    ),
    Change(
        "security/security.c",
        "(file_permission, 0, file, mask);\n\n\tif (ret)\n",
        "(file_permission, 0, file, mask);\n\n\tif (unlikely(ret))\n",
    ),
    Change(
        "security/security.c",
        "\treturn fsnotify_perm(file, mask);\n}\n\nint security_file_alloc(",
        "\tif (unlikely(READ_ONCE(file->f_mode) & FMODE_PATH))\n\t\treturn -EBADF;\n"
        "\treturn fsnotify_perm(file, mask);\n}\n\nint security_file_alloc(",
    ),
    Change(
        "security/security.c",
        "\tif (unlikely(ret))\n\t\treturn ret;\n\n\tif (unlikely(READ_ONCE(file->f_mode)",
        "\tif (unlikely(ret))\n\t\treturn ret;\n\nCOUNT\tif (unlikely(READ_ONCE(file->f_mode)",
    ),
    Change(
        "security/min_addr.c",
        "dac_mmap_min_addr = CONFIG_DEFAULT_MMAP_MIN_ADDR;\n",
        "dac_mmap_min_addr = CONFIG_DEFAULT_MMAP_MIN_ADDR + 4096;\n",
    ),
    "dac_mmap_min_addr",
    Change(
        "security/security.c",
        "int security_file_permission(struct file *file, int mask)\n",
        "/* Each read and write asks. */\nint security_file_permission(struct file *file, int mask)\n",
    ),
    Change(
        "include/linux/lsm_hooks.h",
        "\tint i;\n\n\tfor (i = 0; i < count; i++)\n\t\thlist_del_rcu(&hooks[i].list);\n",
        "\tint i;\n\n\tfor (i = 0; i != count; i++)\n\t\thlist_del_rcu(&hooks[i].list);\n",
    ),
    kconfig="security/Kconfig",
    menu='menu "Security options"\n',
    needs="\tdepends on SECURITY\n",
)
BRANCHES = {"mm": MM, "fs": FS, "net": NET, "kernel/sched": SCHED, "security": SECURITY}


def written(area: str, place: Path) -> Path:
    """The branch as a quilt series of eight patches."""
    branch, planted = BRANCHES[area], Planted(place)
    option = f"KTRIAL_{area.rpartition('/')[2].upper()}_STATISTICS"
    count = f"#ifdef CONFIG_{option}\n\t{{\n\t\tstatic unsigned long counted;\n\n"
    count += "\t\tWRITE_ONCE(counted, READ_ONCE(counted) + 1);\n\t}\n#endif\n"
    config = f'{branch.menu}\nconfig {option}\n\tbool "Count"\n{branch.needs}\tdefault y\n'
    work = branch.work
    for kind in ("no effect", "micro", "check"):
        _plant(planted, kind, getattr(branch, kind.replace(" ", "_")))
    _plant(planted, "option", Change(work.path, work.old, work.new.replace("COUNT", count)))
    _plant(planted, "its Kconfig", Change(branch.kconfig, branch.menu, config))
    _joined(planted)
    for kind in ("data", "comment", "header"):
        _plant(planted, kind, getattr(branch, kind))
    check = branch.check
    added = _added(check)
    _plant(planted, "revert", Change(check.path, added, ""))
    assert len(planted.names) == len(KINDS)
    return planted.write()


def _plant(planted: Planted, kind: str, change: Change) -> None:
    planted.patch(kind, change.path, change.old, change.new)


def _added(check: Change) -> str:
    """The lines that the check brings, which stand together."""
    before = check.old.splitlines(keepends=True)
    lines = check.new.splitlines(keepends=True)
    start = next(at for at, line in enumerate(lines) if at >= len(before) or line != before[at])
    return "".join(lines[start : start + len(lines) - len(before)])


def _joined(planted: Planted) -> None:
    """The last two patches as one: an option, and what it switches on."""
    first, second = (planted.place / name for name in planted.names[-2:])
    first.write_text(first.read_text() + second.read_text().partition("---\n")[2])
    second.unlink()
    planted.names.pop()


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where each branch lies, with the store of its trials."""
    directories = {area: tmp_path_factory.mktemp(area.replace("/", "-")) for area in BRANCHES}
    for area, place in directories.items():
        (place / "q").mkdir()
        written(area, place / "q")
    return directories


def answer_of(place: Path, config: str, *options: str) -> dict[str, Any]:
    """What the command says of the branch there, as JSON. What was measured before is in its store."""
    done = run(place, "--quilt", "q", "--config", config, "--rebuild", "0", "--json", *options)
    assert done.returncode in {0, 1, 125}, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def is_compiled(area: str, config: str, kind: str) -> bool:
    """Whether the patch has code there: of security/ `guest` compiles the data's file only."""
    return area != "security" or config == DEBIAN or kind == "data"


@pytest.mark.parametrize("config", [GUEST, DEBIAN])
@pytest.mark.parametrize("area", BRANCHES)
def test_each_patch_has_the_line_that_it_should_have(area: str, config: str, places: dict[str, Path]) -> None:
    check_lines(area, config, answer_of(places[area], config)["patches"])


def test_a_branch_that_clang_compiles_has_the_same_lines(places: dict[str, Path]) -> None:
    answer = answer_of(places["fs"], GUEST, "--make", "LLVM=1", "--workload", FS.workload)
    check_lines("fs", GUEST, answer["patches"])


@pytest.mark.parametrize("area", BRANCHES)
def test_what_one_configuration_compiles_alone_is_told(area: str, places: dict[str, Path]) -> None:
    both = answer_of(places[area], f"{GUEST},{DEBIAN}", "--workload", BRANCHES[area].workload)
    for config, answer in both["configurations"].items():
        check_lines(area, config, answer["patches"])
    assert (f"Only in {DEBIAN} patches" in both["compiled_in_one"]) == (area == "security")


def check_lines(area: str, config: str, patches: list[dict[str, Any]]) -> None:
    branch = BRANCHES[area]
    for kind, patch in zip(KINDS, patches, strict=True):
        cell = next((one for one in patch["cells"] if one["workload"] == branch.workload), None)
        where, state = f"{area}, {config}, {kind}", patch["state"]
        if not is_compiled(area, config, kind):
            assert state in NO_CODE, where
            continue
        if kind in {"no effect", "comment"}:
            assert state in NO_CODE, where
        elif kind in {"check", "option", "revert"}:
            assert state == "built", where
            assert branch.function in patch["functions"], where
            assert cell is not None, where
            # Not the whole cell's: where ticks fall elsewhere they weigh more than five instructions.
            own = sum(Fraction(row["difference"]) for row in cell["functions"] if row["changed"])
            assert own != 0, where
            assert (own < 0) == (kind == "revert"), where
        elif kind == "data":
            assert branch.variable in patch["data"], where
            assert cell is None or cell["inside"] or cell["open"], where
        else:
            assert state in {"built", "same image"}, where
        options = {option["option"]: option["after"] for option in patch["options"] if option["new"]}
        assert bool(options) == (kind == "option"), where
        assert set(options.values()) <= {"y"}, where
