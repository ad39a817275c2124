"""A small site for tests of pages: two GPUs, two methods, and everything that must be hidden."""

from types import SimpleNamespace

import pytest

from benchmark import vocabulary


@pytest.fixture
def site(db, make) -> SimpleNamespace:
    """alpha solves relu and gelu on the H200 and relu on the interpreter; beta fails at relu."""
    h200, cpu = make.gpu(), make.interpreter()
    relu, gelu = make.task(), make.task("gelu", dtypes=["float16"], difficulty=3)
    add = make.task("add", "math")
    alpha = make.submission(make.method("alpha", organisation="Alpha Labs"), "alpha-set")
    beta = make.submission(make.method("beta"), "beta-set")
    fast = make.run(alpha, relu, h200, speedup=2.0)
    make.measurement(fast, 0)
    make.measurement(fast, 1, speedup=2.0, flops=1e9, bytes=1e8)
    make.run(alpha, gelu, h200, speedup=1.5)
    make.run(alpha, relu, cpu)
    failed = make.run(
        beta,
        relu,
        h200,
        verdict=vocabulary.WRONG_VALUES,
        stage="check",
        detail="output[0]: 3 of 4096 elements off",
        log_tail="<script>alert(1)</script>",
    )
    return SimpleNamespace(
        h200=h200,
        cpu=cpu,
        relu=relu,
        gelu=gelu,
        add=add,
        alpha=alpha,
        beta=beta,
        fast=fast,
        failed=failed,
    )


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    """Boards kept by an earlier test are of another database."""
    from leaderboard import kept

    kept.forget()
