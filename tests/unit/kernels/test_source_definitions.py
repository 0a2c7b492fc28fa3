"""C sources as definitions: what a file defines, what differs between two versions, what is inlined."""

from collections.abc import Mapping

import pytest

from ktrial.kernels.source_definitions import (
    DefinitionKind,
    InlinedSource,
    Key,
    SourceAt,
    changed,
    definitions_in,
)
from ktrial.model.commits import Relation

PIPE = """\
#include <linux/pipe.h>

/* How many { there may be. */
static unsigned int pipe_max = 1 << 20;

struct pipe_info {
	int head; /* newest */
};

typedef struct { int a; } pair_t;

static bool helper(struct pipe_info *pipe)
{
	return pipe->head > pipe_max;
}

static ssize_t
pipe_write(struct pipe_info *pipe,
		int count) __must_hold(&pipe->lock)
{
#ifdef CONFIG_X
	if (count) {
#else
	if (count > 1) {
#endif
		return full(pipe) ? 0 : helper(pipe);
	}
	return LIMIT(count);
}

__printf(1, 2) int say(const char *form, ...)
{
	return 0;
}

SYSCALL_DEFINE2(pipe2, int __user *, fildes, int, flags)
{
	return do_pipe2(fildes, flags);
}

static const struct file_operations pipe_fops = {
	.write	= pipe_write,
};

int declared(int a);
EXPORT_SYMBOL(pipe_write);
"""
HEADER = """\
#define LIMIT(count) \\
	((count) * 2)
static inline bool full(struct pipe_info *pipe) { return empty(pipe); }
static __always_inline bool empty(struct pipe_info *pipe)
{
	return !pipe->head;
}
"""
FUNCTION, MACRO = DefinitionKind.FUNCTION, DefinitionKind.MACRO


def names(text: str, kind: DefinitionKind) -> set[str]:
    return {key.name for key in definitions_in(text) if key.kind is kind}


def test_a_file_defines_functions_structures_data_and_macros() -> None:
    assert names(PIPE, FUNCTION) == {"helper", "pipe_write", "say", "__do_sys_pipe2"}
    assert names(PIPE, DefinitionKind.STRUCTURE) == {"pipe_info", "pair_t"}
    assert names(PIPE, DefinitionKind.DATA) == {"pipe_max", "pipe_fops"}
    assert names(HEADER, MACRO) == {"LIMIT"}
    assert names(HEADER, FUNCTION) == {"full", "empty"}


def test_assembly_defines_what_its_macros_name() -> None:
    text = "SYM_FUNC_START(clear_page_erms)\n\tmovl $4096,%ecx\n\tRET\nSYM_FUNC_END(clear_page_erms)\n"
    assert list(definitions_in(text, is_assembly=True)) == [Key(FUNCTION, "clear_page_erms")]


@pytest.mark.parametrize(
    ("old", "new", "names_changed"),
    [
        ("/* newest */", "/* the newest one */", set()),
        ("\treturn 0;\n}\n\nSYSCALL", "\n\treturn   0;\n}\n\nSYSCALL", set()),
        ("int head;", "long head;", {"pipe_info"}),
        ("1 << 20", "1 << 21", {"pipe_max"}),
        ("if (count > 1)", "if (count > 2)", {"pipe_write"}),
        ("return do_pipe2(fildes, flags)", "return do_pipe2(fildes, 0)", {"__do_sys_pipe2"}),
        ("helper", "pipe_helper", {"helper", "pipe_helper", "pipe_write"}),
        ("\t.write\t= pipe_write,\n", "", {"pipe_fops"}),
    ],
)
def test_what_differs_is_told_by_tokens(old: str, new: str, names_changed: set[str]) -> None:
    assert old in PIPE
    after = PIPE.replace(old, new)
    sizes = changed(definitions_in(PIPE), definitions_in(after))
    assert {key.name for key in sizes} == names_changed
    assert all(size > 0 for size in sizes.values())


def test_tokens_in_another_order_are_a_change() -> None:
    before, after = (definitions_in(f"int f(void)\n{{\n\t{body};\n}}\n") for body in ("a - b", "b - a"))
    assert changed(before, after) == {Key(FUNCTION, "f"): 1}


def a_source(files: Mapping[str, str]) -> SourceAt:
    return SourceAt(lambda path: files[path].encode() if path in files else None)


FILES = {
    "fs/pipe.c": PIPE,
    "include/linux/pipe.h": f'#include <asm/cpu.h>\n#include "more.h"\n{HEADER}',
    "include/linux/more.h": "#include <linux/pipe.h>\n",
    "arch/x86/include/asm/cpu.h": "struct cpu {\n\tint a;\n};\n",
}


def test_headers_are_those_of_the_source_that_are_included_directly_or_not() -> None:
    assert set(a_source(FILES).headers(["fs/pipe.c"])) == FILES.keys() - {"fs/pipe.c"}


@pytest.mark.parametrize(
    ("compiled", "is_inlined"), [({"pipe_write"}, True), ({"helper"}, False), ((), False)]
)
def test_a_function_consists_of_what_is_inlined_and_names_data_and_structures(
    compiled: frozenset[str], is_inlined: bool
) -> None:
    source = a_source(FILES)
    file = InlinedSource(source, "fs/pipe.c", source.headers(["fs/pipe.c"]), compiled)
    relations = {key.name: relation for (_, key), relation in file.parts("pipe_write").items()}
    inlined = {name for name, relation in relations.items() if relation is Relation.INLINED}
    assert relations["pipe_write"] is Relation.OWN
    assert inlined == {"full", "empty", "LIMIT"} | ({"helper"} if is_inlined else set())
    assert relations["pipe_info"] is Relation.STRUCTURE
    assert ("pipe_max" in relations) == is_inlined
    assert "cpu" not in relations
    assert "__do_sys_pipe2" not in relations


def test_a_function_that_a_file_does_not_define_has_no_parts() -> None:
    assert InlinedSource(a_source(FILES), "fs/pipe.c", ()).parts("declared") == {}
