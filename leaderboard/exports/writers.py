"""Rows to bytes: CSV, JSON lines and Parquet, each written once and counted on the way."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from leaderboard.charts.base import csv_cell
from leaderboard.exports.datasets import FLAG, INTEGER, NUMBER, Dataset, Row

BATCH = 5000  # rows of a Parquet row group at a time


def write_csv(dataset: Dataset, rows: Iterable[Row], path: Path) -> int:
    """RFC 4180 in UTF-8; text that a spreadsheet would run as a formula is disarmed."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(dataset.names)
        for row in rows:
            writer.writerow([csv_cell(value) for value in row])
            count += 1
    return count


def write_jsonl(dataset: Dataset, rows: Iterable[Row], path: Path) -> int:
    """One object a line; null where nothing was measured, never NaN."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            line = dict(zip(dataset.names, row, strict=True))
            file.write(json.dumps(line, allow_nan=False, ensure_ascii=False) + "\n")
            count += 1
    return count


def write_parquet(dataset: Dataset, rows: Iterable[Row], path: Path) -> int:
    """Typed columns, compressed by zstd, a meaning for each. pyarrow is imported here only."""
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
    from pyarrow import parquet

    kinds = {INTEGER: pa.int64(), NUMBER: pa.float64(), FLAG: pa.bool_()}
    schema = pa.schema(
        [
            pa.field(c.name, kinds.get(c.kind, pa.string()), metadata={"meaning": c.meaning})
            for c in dataset.columns
        ]
    )
    count = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for some in _batches(rows):
            columns = [list(column) for column in zip(*some, strict=True)]
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(some)
    return count


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    it = iter(rows)
    while some := list(islice(it, BATCH)):
        yield some


FORMATS: dict[str, Callable[[Dataset, Iterable[Row], Path], int]] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
}
TYPES: dict[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
