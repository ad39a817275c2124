"""What is compared (catalog), what was entered (entries) and what was found (results)."""

from benchmark.models.catalog import Gpu, Method, Task, TaskVersion
from benchmark.models.entries import Candidate, Source, Submission
from benchmark.models.results import Audit, Measurement, Run

__all__ = [
    "Audit",
    "Candidate",
    "Gpu",
    "Measurement",
    "Method",
    "Run",
    "Source",
    "Submission",
    "Task",
    "TaskVersion",
]
