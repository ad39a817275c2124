"""numpy, where thousands of numbers are added or ordered at once.

Imported when something is first worked out with it: it takes a tenth of a second and 20 MB, and a
process that only answers what it has kept, or has nothing to rank, needs neither.
"""

import os
from functools import cache
from typing import Any

Array = Any  # of numpy: its own types would have to be imported


@cache
def numpy() -> Any:
    # Read when BLAS is loaded: at this size several threads take longer to find one another than
    # one takes for all of it, and other web processes want the cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import numpy

    return numpy
