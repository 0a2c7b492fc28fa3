"""A kernel's functions in several workloads: what belongs to the kernel is worked out once, 100,000 names."""

from tests.support.profiles import a_profile

from ktrial.analysis.attribution.function_matching import functions_of, together
from ktrial.model.profile import FunctionFiles

FILES = FunctionFiles(files={"fork": "kernel/fork.c"}, functions=frozenset({"fork", "exec.cold", "exec"}))


def test_names_are_those_of_the_source_and_the_same_object_in_each_workload() -> None:
    first, second = (functions_of(a_profile({(name, ""): 5}), FILES) for name in ("fork", "exec.part.0"))
    assert first.known == {"fork", "exec"}
    assert first.known is second.known
    both = together([first, second])
    assert both.known == first.known
    assert both.files == FILES.files
    assert set(both.counts) == {("fork", ""), ("exec", "")}


def test_functions_of_two_images_are_joined() -> None:
    more = FunctionFiles(files={"exec": "fs/exec.c"}, functions=frozenset({"exec", "open"}))
    both = together([functions_of(a_profile({("fork", ""): 5}), files) for files in (FILES, more)])
    assert both.known == {"fork", "exec", "open"}
    assert both.files == {"fork": "kernel/fork.c", "exec": "fs/exec.c"}
