"""What is compared (catalog), what was entered (entries) and what was found (results)."""

from benchmark.models.catalog import Gpu, Method, Task, TaskVersion
from benchmark.models.entries import Candidate, Source, Submission
from benchmark.models.results import Audit, Board, Immutable, Measurement, Run

__all__ = [
    "Audit",
    "Board",
    "Candidate",
    "Gpu",
    "Immutable",
    "Measurement",
    "Method",
    "Run",
    "Source",
    "Submission",
    "Task",
    "TaskVersion",
]
