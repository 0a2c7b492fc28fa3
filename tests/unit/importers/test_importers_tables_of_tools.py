"""Tables that other tools write: what is a measurement, what numbers rows, and where the header is."""

from pathlib import Path

import pytest
from tests.support.program_texts import only_family, read_file

from ktrial.importers.errors import ImportFailed


def table(where: Path, *lines: str) -> Path:
    path = where / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_of_redis_benchmark_each_test_is_a_family_and_the_file_is_the_group(tmp_path: Path) -> None:
    header = '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms"'
    imported = read_file(
        table(tmp_path, header, '"SET","3340.12","14.829","0.472","15.927"', '"GET","3301","15.1","0.4","16"')
    )
    assert [family.name for family in imported.families] == ["SET", "GET"]
    assert [group.label for family in imported.families for group in family.groups] == ["table", "table"]
    assert "numbers rps" in imported.understood
    assert "not read avg_latency_ms, min_latency_ms, p50_latency_ms" in imported.understood


def test_of_criterion_s_table_each_row_is_a_benchmark_in_seconds(tmp_path: Path) -> None:
    header = "Name,Mean,MeanLB,MeanUB,Stddev,StddevLB,StddevUB"
    imported = read_file(table(tmp_path, header, "a/1,2.5e-5,2.4e-5,2.6e-5,1e-6,9e-7,2e-6"))
    family = only_family(imported)
    assert (family.name, family.unit) == ("a/1", "s")
    assert "not read MeanLB, MeanUB, StddevLB, StddevUB" in imported.understood


@pytest.mark.parametrize("cells", [("0", "1", "2"), ("1", "2", "3"), ("0", "0", "1"), ("0", "0", "0")])
def test_an_index_that_counts_rows_is_no_measurement(tmp_path: Path, cells: tuple[str, ...]) -> None:
    rows = (f"{cell},gpu,{40 + at}" for at, cell in enumerate(cells))
    with pytest.raises(ImportFailed, match="may mean several things, so nothing is read: temperature"):
        read_file(table(tmp_path, "index,name,temperature", *rows))


def test_extremes_beside_a_mean_name_no_group(tmp_path: Path) -> None:
    header = "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]"
    path = table(tmp_path, header, "8 1000 9.1 11.2 10.1", "16 1000 9.3 12.2 10.4")
    family = only_family(read_file(path, value="t_avg[usec]", group_by=("bytes",)))
    assert [group.label for group in family.groups] == ["8", "16"]


def test_time_slices_are_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="line 1: 3 of 3 columns may mean several things"):
        read_file(table(tmp_path, "TimeSlice,Sent,Received", "0.006,8,1", "5.006,22,7", "10.006,21,9"))


def test_a_header_in_a_comment_may_have_spaces_in_its_names(tmp_path: Path) -> None:
    lines = (
        "# OSU MPI Bandwidth Test",
        "# Size      Bandwidth (MB/s)",
        "1           0.19",
        "2           0.38",
    )
    family = only_family(read_file(table(tmp_path, *lines)))
    assert (family.unit, [group.values for group in family.groups]) == ("MB/s", [(0.19,), (0.38,)])


def test_a_row_of_numbers_is_no_header(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match=r"its header is 1, 0\.19"):
        read_file(table(tmp_path, "1           0.19", "2           0.38"))
