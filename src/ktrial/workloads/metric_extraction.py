"""Numbers in what a command printed: by regular expression, or by a path into JSON."""

import json
import math
import re
from collections.abc import Iterable

from ktrial.model.workload import MetricRule
from ktrial.target import StepResult
from ktrial.workloads.errors import MetricNotFound
from ktrial.workloads.program_runs import last_words


def values(workload: str, rule: MetricRule, results: Iterable[StepResult]) -> list[float]:
    """Every number that the rule finds in the runs, at least one in each. Raises MetricNotFound."""
    find = _by_regex if rule.regex else _by_json
    return [number for result in results for number in find(workload, rule, result)]


def _by_regex(workload: str, rule: MetricRule, result: StepResult) -> list[float]:
    """In standard output and in standard error: many programs print their figures there."""
    matches = re.findall(rule.regex, f"{result.stdout}\n{result.stderr}", re.MULTILINE)
    if not matches:
        raise _not_found(workload, rule, result, f"nothing matches {rule.regex!r}")
    return [_number(workload, rule, result, match) for match in matches]


def _by_json(workload: str, rule: MetricRule, result: StepResult) -> list[float]:
    try:
        found = json.loads(result.stdout)
    except json.JSONDecodeError as error:
        raise _not_found(workload, rule, result, f"its output is no JSON ({error})") from None
    way = ""
    for key in rule.json_path.split("."):
        way = f"{way}.{key}" if way else key
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise _not_found(workload, rule, result, f"there is no {way!r} in the JSON") from None
    numbers = found if isinstance(found, list) and found else [found]
    return [_number(workload, rule, result, number) for number in numbers]


def _number(workload: str, rule: MetricRule, result: StepResult, found: object) -> float:
    plain = isinstance(found, int | float | str) and not isinstance(found, bool)
    try:
        number = float(str(found)) if plain else math.nan
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return number
    raise _not_found(workload, rule, result, f"{found!r} is not a number")


def _not_found(workload: str, rule: MetricRule, result: StepResult, problem: str) -> MetricNotFound:
    return MetricNotFound(workload=workload, metric=rule.name, problem=problem, said=last_words(result))
