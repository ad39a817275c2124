"""The suite: what is asked of kernels. Pure torch; imports no Django, and task modules only on
first use.
"""

from benchmark.suite.registry import UnknownTask, all_tasks, get, names, resolve, suite_digest
from benchmark.suite.spec import Arguments, Case, Comparison, Task

__all__ = [
    "Arguments",
    "Case",
    "Comparison",
    "Task",
    "UnknownTask",
    "all_tasks",
    "get",
    "names",
    "resolve",
    "suite_digest",
]
