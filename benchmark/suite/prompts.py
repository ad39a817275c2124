"""Generation prompts: what a model has to know of a contract to write a kernel, in words.

The fields `instruction`, `input` and `output` and the two headings within the instruction are those
that TritonBench's users know; our intake finds the task of an answer by them.
"""

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence

from benchmark.suite.mutants import ELSEWHERE
from benchmark.suite.parameters import ABSENT, argument
from benchmark.suite.spec import Case, Task
from benchmark.suite.trees import tensors

FUNCTIONAL = "Functional Description: "
WRAPPER = "Wrapper Entry Information: "
ROLE = (
    "You write GPU kernels in Triton. Write one Python file that defines the function described "
    "below, computed by Triton kernels of your own, correct first and then as fast as you can."
)
RULES = (
    "The function has exactly the name and the parameters given, and returns what the description "
    "says, in a plain torch.Tensor (or a tuple of them) on the device of the inputs.",
    "All arithmetic is done by kernels decorated with @triton.jit in this file, launched in every "
    "call. PyTorch may allocate outputs and workspace, and take views and shapes.",
    "No library computes the result or a part of it: no torch, cuBLAS or cuDNN operator, no "
    "torch.compile, no fallback to PyTorch for some shapes or after an exception.",
    "Nothing is kept between calls but compiled kernels: no results of earlier calls, no answers "
    "looked up by shape or pointer.",
    "Arguments stay as they are unless the description says that they are written.",
    "float32 means float32: give tl.dot input_precision='ieee', TF32 doesn't pass.",
    "Sizes need not be powers of two or multiples of a tile.",
)
ENDING = "Answer with the Python file alone, imports included, without tests."


def record(task: Task) -> dict[str, str]:
    """One line of the JSONL: the task, the whole prompt, and the alpaca fields."""
    prompt = f"{ROLE}\n\n{contract(task)}\n\n{ENDING}\n"
    return {
        "task": task.name,
        "category": task.category,
        "prompt": prompt,
        "instruction": prompt,
        "input": "",
        "output": "",
    }


def jsonl(tasks: Iterable[Task]) -> str:
    """The records of the tasks, a line each."""
    return "".join(json.dumps(record(task), ensure_ascii=False) + "\n" for task in tasks)


def contract(task: Task) -> str:
    """The contract in words: what it computes, how it is called, on what, how it is judged."""
    may = [f"A library may do {', '.join(task.delegates)}."] if task.delegates else []
    parts = (
        f"{FUNCTIONAL}{task.description}",
        f"{WRAPPER}{task.signature}",
        _listed("Inputs:", _inputs(task)),
        f"Tolerance: {task.tolerance}",
        _listed("Rules:", [*RULES, *may]),
        _listed("Beyond the published contract:", task.differences),
    )
    return "\n\n".join(part for part in parts if part)


def _listed(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([heading, *(f"- {line}" for line in lines)]) if lines else ""


def _inputs(task: Task) -> list[str]:
    lines = [f"dtypes: {', '.join(task.dtypes)}"]
    lines += [f"correctness is checked on {_sizes(task.small_cases)}"]
    lines += [f"time is measured on {_sizes(task.timed_cases)}"]
    layouts = sorted({case.layout for case in task.cases} - {"contiguous"})
    if layouts:
        lines.append(f"memory layouts besides contiguous: {', '.join(layouts)}")
    else:
        lines.append("tensors are contiguous")
    return lines + [f"{name}: {values}" for name, values in _settings(task).items()]


def _sizes(cases: Iterable[Case]) -> str:
    words = [
        f"{' x '.join(f'{name} {size}' for name, size in case.sizes.items())} ({case.dtype})"
        for case in cases
    ]
    return "; ".join(dict.fromkeys(words))


def _settings(task: Task) -> Mapping[str, str]:
    """The values of parameters that are no tensors, where a case gives one."""
    found: dict[str, list[str]] = {}
    for case in task.cases:
        arguments = task.arguments(case, 0, "meta")
        for name, parameter in inspect.signature(task.function).parameters.items():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL or name in ELSEWHERE:
                continue
            value = argument(task, arguments, name)
            if value is ABSENT or tensors((value,)) or value == parameter.default:
                continue
            if repr(value) not in found.setdefault(name, []):
                found[name].append(repr(value))
    return {f"`{name}` is called with": ", ".join(values) for name, values in found.items()}
