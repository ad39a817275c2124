import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, length, step, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of one chunk of one row."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, CHUNK, BLOCK):
        places = chunk * CHUNK + start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * step + places, mask=places < length, other=0.0).to(
            tl.float32
        )
    tl.store(y_ptr + row * tl.num_programs(1) + chunk, tl.sum(total, 0))


def sum_rows(x):
    """Row sums in float32, in as many steps as the length needs."""
    while x.shape[1] > 1:
        length = x.shape[1]
        chunk = min(triton.next_power_of_2(length), 8192)
        chunks = triton.cdiv(length, chunk)
        y = torch.empty((x.shape[0], chunks), device=x.device, dtype=torch.float32)
        sum_kernel[(x.shape[0], chunks)](x, y, length, length, CHUNK=chunk, BLOCK=min(chunk, 1024))
        x = y
    return x[:, 0]


@triton.jit
def cosine_loss_kernel(
    a_ptr, b_ptr, t_ptr, y_ptr, M, K, margin, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    dot = tl.zeros((ROWS, BLOCK), tl.float32)
    aa = tl.zeros((ROWS, BLOCK), tl.float32)
    bb = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        c = start + tl.arange(0, BLOCK)
        inside = (rows[:, None] < M) & (c[None, :] < K)
        places = rows[:, None] * K + c[None, :]
        a = tl.load(a_ptr + places, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + places, mask=inside, other=0.0).to(tl.float32)
        dot += a * b
        aa += a * a
        bb += b * b
    norms = tl.maximum(tl.sqrt(tl.sum(aa, 1)), 1e-12) * tl.maximum(tl.sqrt(tl.sum(bb, 1)), 1e-12)
    cosine = tl.sum(dot, 1) / norms
    target = tl.load(t_ptr + rows, mask=rows < M, other=1)
    loss = tl.where(target == 1, 1.0 - cosine, tl.maximum(cosine - margin, 0.0))
    tl.store(y_ptr + rows, loss, mask=rows < M)


@triton.jit
def scale_kernel(x_ptr, y_ptr, factor):
    tl.store(y_ptr, tl.load(x_ptr) * factor)


def fused_cosine_embedding_loss_with_normalization(
    input1, input2, target, margin=0, reduction="mean"
):
    a, b = input1.contiguous(), input2.contiguous()
    M, K = a.shape
    loss = torch.empty((M,), device=a.device, dtype=torch.float32)
    cosine_loss_kernel[(triton.cdiv(M, 8),)](
        a,
        b,
        target.contiguous(),
        loss,
        M,
        K,
        float(margin),
        ROWS=8,
        BLOCK=min(triton.next_power_of_2(K), 256),
    )
    if reduction == "none":
        return loss.to(a.dtype)
    y = torch.empty((), device=a.device, dtype=a.dtype)
    total = sum_rows(loss.reshape(1, -1)).contiguous()
    scale_kernel[(1,)](total, y, 1.0 / M if reduction == "mean" else 1.0)
    return y
