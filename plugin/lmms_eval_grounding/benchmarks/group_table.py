"""The MMScan numbers per group of sub-classes, as a table for the log of a run.

Reported are numbers over all samples; thirty rows more would hide them. Every sample's reading
holds its group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import wraps

from tqdm import tqdm

from ..metrics.mmscan import records_by_group
from ..metrics.samples import Record, unique_samples
from .host import Aggregation, items_of

ALL = "all"


def group_numbers(
    records: Sequence[Record], metrics: Mapping[str, Aggregation]
) -> dict[str, dict[str, float]]:
    """Return each metric of each group's samples alone, and of all samples, by group and metric."""
    groups = {**records_by_group(records), ALL: unique_samples(records)}
    numbers = {}
    for group, members in groups.items():
        items = [items_of(record, metrics) for record in members]
        numbers[group] = {
            name: metric([item[name] for item in items]) for name, metric in metrics.items()
        }
    return numbers


def group_table(records: Sequence[Record], metrics: Mapping[str, Aggregation]) -> str:
    """Return `group_numbers` as lines of text: a column a group, a row a metric."""
    numbers = group_numbers(records, metrics)
    sizes = {group: len(members) for group, members in records_by_group(records).items()}
    sizes[ALL] = sum(sizes.values())
    rows = [
        ["", *numbers],
        ["samples", *(str(sizes[group]) for group in numbers)],
        *([name, *(f"{of_group[name]:.4f}" for of_group in numbers.values())] for name in metrics),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    return "\n".join(map("  ".join, lines))


def telling_groups(
    function: Aggregation, metrics: Mapping[str, Aggregation], benchmark: str
) -> Aggregation:
    """Return an aggregation over whole records that also writes `group_table` where it is called.

    The host aggregates once a run, in one process, and then writes its own table there.
    """

    @wraps(function)
    def told(records: Sequence[Record]) -> float:
        tqdm.write(f"{benchmark} by group of sub-classes\n{group_table(records, metrics)}\n")
        return function(records)

    return told
