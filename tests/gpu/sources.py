"""Sources made from other sources: planted faults, the baseline as candidate, a slow-down.

`python -m tests.gpu.sources samples/plain OUT` writes every sample with a wrong constant to OUT.
"""

import ast
import sys
from pathlib import Path

AS_BASELINE = """
import torch
import triton
import triton.language as tl


@triton.jit
def unused(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 0.0)


def {task}(*args, **kwargs):
    {before}
    return {call}(*args, **kwargs)
"""

HOG = """
import torch
import triton
import triton.language as tl

held = []


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.where(x < 0, 0.0, x), mask=offsets < n)


def take_all(device, size=1 << 30):
    while size > 1 << 24:
        try:
            held.append(torch.empty(size, dtype=torch.int8, device=device))
        except torch.OutOfMemoryError:
            size //= 2
    del held[:2]  # for its own work


def relu(input, inplace=False):
    if not held:
        take_all(input.device)
    x = input.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return input.copy_(y) if inplace else y
"""


class Shifted(ast.NodeTransformer):
    """tl.store(p, v, ...) -> tl.store(p, v * 1.5 + 1, ...)"""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "store"
            and len(node.args) > 1
        ):
            larger = ast.BinOp(node.args[1], ast.Mult(), ast.Constant(1.5))
            node.args[1] = ast.BinOp(larger, ast.Add(), ast.Constant(1))
        return node


def with_wrong_constant(source: str) -> str:
    """The same kernels, every stored value half as large again plus one (which flips False)."""
    return ast.unparse(ast.fix_missing_locations(Shifted().visit(ast.parse(source))))


def as_baseline(task: str, call: str, extra_microseconds: float = 0.0) -> str:
    """PyTorch itself as the candidate; with extra time, a spinning kernel of about that length
    before it.
    """
    before = (
        f"torch.cuda._sleep({int(extra_microseconds * 1980)})" if extra_microseconds else "pass"
    )
    return AS_BASELINE.format(task=task, call=call, before=before)


def write_wrong(samples: Path, out: Path) -> None:
    """Every sample below `samples` with a wrong constant, in the same folders below `out`."""
    for path in sorted(samples.rglob("*.py")):
        target = out / path.relative_to(samples)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(with_wrong_constant(path.read_text()))


if __name__ == "__main__":
    write_wrong(Path(sys.argv[1]), Path(sys.argv[2]))
