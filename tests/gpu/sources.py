"""Sources made from other sources: planted faults, the baseline as candidate, a slow-down."""

import ast

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


class Doubled(ast.NodeTransformer):
    """tl.store(p, v, ...) -> tl.store(p, (v) * 1.5, ...)"""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "store"
            and len(node.args) > 1
        ):
            node.args[1] = ast.BinOp(node.args[1], ast.Mult(), ast.Constant(1.5))
        return node


def with_wrong_constant(source: str) -> str:
    """The same kernels, every stored value half as large again."""
    return ast.unparse(ast.fix_missing_locations(Doubled().visit(ast.parse(source))))


def as_baseline(task: str, call: str, extra_microseconds: float = 0.0) -> str:
    """PyTorch itself as the candidate; with extra time, a spinning kernel of about that length
    before it.
    """
    before = (
        f"torch.cuda._sleep({int(extra_microseconds * 1980)})" if extra_microseconds else "pass"
    )
    return AS_BASELINE.format(task=task, call=call, before=before)
