"""GPU architectures for which candidates are compiled, and what a block may use there. Standard
library only.

The limits are what a kernel may ask for at launch; the compiler checks none of them.
"""

from dataclasses import dataclass

KIB = 1024


@dataclass(frozen=True)
class Architecture:
    """`shared_limit`: bytes of shared memory (AMD: LDS) that one block may have at most, its static
    and dynamic parts together. `register_limit`: registers that one thread may have; on AMD vector
    registers, accumulation registers included. `threads_limit`: threads of one block.
    """

    slug: str
    vendor: str
    boards: str
    shared_limit: int
    register_limit: int
    threads_limit: int
    source: str


CUDA_GUIDE = "NVIDIA CUDA C++ Programming Guide, technical specifications per compute capability"
CDNA3_GUIDE = "AMD Instinct MI300 (CDNA3) instruction set architecture: 64 KiB LDS, 512 registers"

ARCHITECTURES = (
    Architecture("sm_80", "NVIDIA", "A100, A30", 163 * KIB, 255, 1024, CUDA_GUIDE),
    Architecture("sm_89", "NVIDIA", "L40S, L4, RTX 4090", 99 * KIB, 255, 1024, CUDA_GUIDE),
    Architecture("sm_90", "NVIDIA", "H100, H200, GH200", 227 * KIB, 255, 1024, CUDA_GUIDE),
    Architecture("sm_100", "NVIDIA", "B200, GB200", 227 * KIB, 255, 1024, CUDA_GUIDE),
    Architecture("sm_120", "NVIDIA", "RTX 5090, RTX PRO 6000", 99 * KIB, 255, 1024, CUDA_GUIDE),
    Architecture("gfx942", "AMD", "MI300X, MI300A, MI325X", 64 * KIB, 512, 1024, CDNA3_GUIDE),
)
ARCHITECTURE_BY_SLUG = {one.slug: one for one in ARCHITECTURES}
