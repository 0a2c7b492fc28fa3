"""The mutants of a source file: each is the file with one small change, made by mutmut's operators."""

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import Mutation, create_mutations

_NAMED_POINT = m.Call(func=m.Name("fault_point"))
"""A place at which tests kill ktrial. What it is called they read in the source."""


@dataclass(frozen=True)
class Mutant:
    """One changed function of a file; the number says which of the function's mutants it is."""

    file: str
    function: str
    number: int
    lines: range
    """Where the function stands in the file, without the line that names it."""
    module: cst.Module
    mutation: Mutation

    @property
    def name(self) -> str:
        return f"{self.file}:{self.function}:{self.number}"

    def source(self) -> str:
        """The whole file with the change."""
        changed = self.module.deep_replace(self.mutation.original_node, self.mutation.mutated_node)
        assert isinstance(changed, cst.Module)
        code: str = changed.code
        return code

    def diff(self) -> str:
        """For people; its first line names the mutant."""
        before, after = self.module.code.splitlines(), self.source().splitlines()
        lines = difflib.unified_diff(before, after, self.file, self.file, lineterm="")
        return "\n".join((f"# {self.name}", *lines, ""))

    def changes(self) -> tuple[str, str]:
        """The text that is taken away and the text that is put there, without regard to white space."""
        before, after = self.module.code.splitlines(), self.source().splitlines()
        lines = [line for line in difflib.ndiff(before, after) if line[:1] in "-+"]
        old, new = (
            " ".join(" ".join(line[1:] for line in lines if line[0] == sign).split()) for sign in "-+"
        )
        return old, new


def mutants_of(root: Path, file: str) -> Iterator[Mutant]:
    """Every mutant of the functions and methods in a file, in the order in which they stand there."""
    code = (root / file).read_text(encoding="utf-8")
    module, mutations, _, _ = create_mutations(file, code)
    # mutmut keeps the module that it has parsed, so that the nodes are the same ones.
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    names = dict(_functions(module))
    points = [call for call in m.findall(module, _NAMED_POINT) if isinstance(call, cst.Call)]
    labels = {argument.value for call in points for argument in call.args}
    numbers: Counter[str] = Counter()
    for mutation in mutations:
        function = mutation.contained_by_top_level_function
        if not isinstance(function, cst.FunctionDef) or function not in names:
            continue
        numbers[names[function]] += 1
        if mutation.original_node in labels or _is_same(mutation):
            continue
        place = positions[function]
        lines = range(place.start.line + 1, place.end.line + 1)
        yield Mutant(file, names[function], numbers[names[function]], lines, module, mutation)


def _is_same(mutation: Mutation) -> bool:
    """Names of encodings have no case."""
    old, new = mutation.original_node, mutation.mutated_node
    if not isinstance(old, cst.SimpleString) or not isinstance(new, cst.SimpleString):
        return False
    same: bool = old.value.lower() == new.value.lower() == '"utf-8"'
    return same


def _functions(module: cst.Module) -> Iterator[tuple[cst.FunctionDef, str]]:
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef):
            yield statement, statement.name.value
        elif isinstance(statement, cst.ClassDef):
            for inner in statement.body.body:
                if isinstance(inner, cst.FunctionDef):
                    yield inner, f"{statement.name.value}.{inner.name.value}"
