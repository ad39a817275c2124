"""Steps of optimizers: parameters and state change in place and are returned."""

import torch

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element, product, total
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

optimizer = category("Optimizer")

EPS = torch.finfo(torch.float32).eps


def state(make: Maker, name: str, *shape: int) -> torch.Tensor:
    """A running mean, or for `squares` a positive one; zeros before the first step."""
    if make.case.options.get("step") == 1:
        return torch.zeros(shape, dtype=make.dtype, device=make.device)
    return make.positive(*shape) if name == "squares" else make.tensor(*shape)


def step_arguments(make: Maker, *states: str) -> Arguments:
    """Parameter, gradient and the named states, all of the case's shape; the options."""
    shape = make.case.shape
    tensors = make.tensor(*shape), make.tensor(*shape)
    return Arguments((*tensors, *(state(make, name, *shape) for name in states)), make.options())


def with_mean_and_squares(make: Maker) -> Arguments:
    return step_arguments(make, "mean", "squares")


def with_mean(make: Maker) -> Arguments:
    return step_arguments(make, "mean")


def with_squares(make: Maker) -> Arguments:
    return step_arguments(make, "squares")


def with_buffer(make: Maker) -> Arguments:
    """A momentum buffer, unless the case is about a step without one."""
    made = step_arguments(make, *(() if make.case.options.get("fresh") else ("mean",)))
    return Arguments(made.args, make.options("fresh"))


def step_cases(*variants: dict[str, object], **timed_options: object):
    """The small cases with one variant of options each, then the timed ones."""
    checked = (
        small("one", "normal", n=1),
        small("odd", "heavy_tail", rows=37, columns=53),
        small("prime", "wide", n=1009),
        small("block", "mixed", a=3, b=5, c=67),
        small("transposed", "scaled", layout="transposed", rows=33, columns=48),
        small("ties", "ties", rows=64, columns=64),
        small("strided", "normal", layout="strided", rows=9, columns=129),
    )
    clocked = (
        timed("large", "mixed", n=1 << 25),
        timed("matrix", "mixed", rows=8192, columns=2048),
        timed("odd", "mixed", rows=4099, columns=4001),
    )
    pairs = zip(checked, variants, strict=True)
    return (
        *(with_options(case, **options) for case, options in pairs),
        *(with_options(case, **timed_options) for case in clocked),
    )


def scaled_step(lr, grad, squares, grad_size, squares_size, root):
    """lr times the terms of grad / root, where root comes of a sum `squares` of this size."""
    return lr * (grad_size + grad.abs() * squares_size / squares.clamp(min=1e-30)) / root


def adam_sizes(param, grad, grad_size, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps):
    """Sizes of the terms behind parameter, mean and squares; 1 - beta has the rounding of 1."""
    mean_size, squares_size = exp_avg.abs() + grad_size, exp_avg_sq + grad_size**2
    mean = beta1 * exp_avg + (1 - beta1) * grad
    squares = beta2 * exp_avg_sq + (1 - beta2) * grad**2
    root = (squares / (1 - beta2**step)).sqrt() + eps
    rate = lr / (1 - beta1**step)
    update = scaled_step(rate, mean, squares, mean_size, squares_size, root)
    return param.abs() + update, mean_size, squares_size


def adamw_magnitude(
    param,
    grad,
    exp_avg,
    exp_avg_sq,
    step,
    lr=0.001,
    beta1=0.9,
    beta2=0.999,
    eps=1e-8,
    weight_decay=0.01,
):
    """The terms of the three sums."""
    return adam_sizes(param, grad, grad.abs(), exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps)


@optimizer(
    "adamw_step",
    inputs=with_mean_and_squares,
    cases=step_cases(
        {"step": 1},
        {"step": 7, "lr": 0.02, "weight_decay": 0.3},
        {"step": 1, "lr": 0.1, "eps": 0.01},
        {"step": 100, "beta1": 0.8, "beta2": 0.95, "lr": 0.05},
        {"step": 3, "lr": 0.01, "weight_decay": 0.0},
        {"step": 1000, "lr": 0.1, "eps": 0.5},
        {"step": 12, "lr": 0.03, "beta1": 0.5, "weight_decay": 0.1},
        step=10,
    ),
    check=Close(magnitude=adamw_magnitude),
    flops=per_element(14),
    mutates=True,
)
def adamw_step(
    param,
    grad,
    exp_avg,
    exp_avg_sq,
    step,
    lr=0.001,
    beta1=0.9,
    beta2=0.999,
    eps=1e-8,
    weight_decay=0.01,
):
    """One step of Adam with decoupled weight decay, in place, `step` counted from 1:
    p (1 - lr decay), m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, then
    p - lr m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + eps). Tensors of one shape;
    returns param, exp_avg and exp_avg_sq.
    """
    if weight_decay:
        param.mul_(1 - lr * weight_decay)
    exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    root = exp_avg_sq.div(1 - beta2**step).sqrt_().add_(eps)
    param.addcdiv_(exp_avg, root, value=-lr / (1 - beta1**step))
    return param, exp_avg, exp_avg_sq


def lists_of_tensors(make: Maker) -> Arguments:
    """For each of the case's sizes (param, grad, exp_avg, exp_avg_sq, step)."""
    step = make.case.options["step"]
    params = [
        (
            *(make.tensor(n) for _ in range(2)),
            *(state(make, s, n) for s in ("mean", "squares")),
            step,
        )
        for n in make.case.shape
    ]
    return Arguments((params,), make.options("step"))


def adam_magnitude(params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
    """The terms of the sums, tensor by tensor."""
    sizes = []
    for param, grad, exp_avg, exp_avg_sq, step in params:
        decayed = grad + weight_decay * param
        size = grad.abs() + weight_decay * param.abs()
        sizes.append(
            adam_sizes(param, decayed, size, exp_avg, exp_avg_sq, step, lr, betas[0], betas[1], eps)
        )
    return sizes


@optimizer(
    "Adam",
    inputs=lists_of_tensors,
    cases=(
        with_options(small("one", "normal", first=1, second=1, third=1), step=1),
        with_options(small("odd", "heavy_tail", first=1009, second=53, third=7), step=7, lr=0.02),
        with_options(
            small("decay", "wide", first=129, second=2048, third=31),
            step=3,
            weight_decay=0.3,
            lr=0.05,
        ),
        with_options(
            small("betas", "mixed", first=67, second=5, third=1024),
            step=100,
            betas=[0.8, 0.95],
            lr=0.05,
        ),
        with_options(
            small("strided", "scaled", layout="strided", first=257, second=48, third=33),
            step=12,
            lr=0.1,
            eps=0.5,
        ),
        with_options(
            small("fresh", "ties", first=64, second=513, third=512),
            step=1,
            lr=0.1,
            eps=0.01,
            weight_decay=0.1,
        ),
        with_options(
            timed("large", "mixed", first=1 << 24, second=1 << 23, third=1 << 10), step=10
        ),
        with_options(timed("even", "mixed", first=1 << 22, second=1 << 22, third=1 << 22), step=10),
        with_options(
            timed("odd", "mixed", first=10000019, second=4001, third=1000003),
            step=10,
            weight_decay=0.01,
        ),
    ),
    check=Close(magnitude=adam_magnitude),
    flops=total(product(14, "first"), product(14, "second"), product(14, "third")),
    mutates=True,
    differences=(
        "`params` is a list of (param, grad, exp_avg, exp_avg_sq, step), one step is made in place "
        "and the result is a list of (param, exp_avg, exp_avg_sq): the published task returns a "
        "torch.optim.Adam and compares its settings, so that no kernel ever runs",
    ),
)
def Adam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):  # noqa: N802 - published
    """One step of Adam in place for each of a list of tensors (param, grad, exp_avg, exp_avg_sq,
    step), `step` counted from 1: g + decay p for g, m = beta1 m + (1 - beta1) g,
    v = beta2 v + (1 - beta2) g^2, then p - lr m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) +
    eps). Gradients stay as they are; returns a list of (param, exp_avg, exp_avg_sq).
    """
    results = []
    for param, grad, exp_avg, exp_avg_sq, step in params:
        decayed = grad.add(param, alpha=weight_decay) if weight_decay else grad
        moments = (exp_avg, exp_avg_sq, step)
        results.append(adamw_step(param, decayed, *moments, lr, *betas, eps, weight_decay=0))
    return results


def lion_magnitude(param, grad, exp_avg, lr=0.0001, beta1=0.9, beta2=0.99, weight_decay=0.0):
    """|p| + lr and |m| + |g|. Where the sum behind the sign is within its own rounding of zero,
    either sign is right: the parameter may be off by 2 lr.
    """
    size = exp_avg.abs() + grad.abs()
    direction = beta1 * exp_avg + (1 - beta1) * grad
    undecided = direction.abs() < 4 * EPS * size
    return param.abs() + torch.where(undecided, 2 * lr / EPS, lr), size


@optimizer(
    "lion_step",
    inputs=with_mean,
    cases=step_cases(
        {},
        {"lr": 0.02, "weight_decay": 0.3},
        {"lr": 0.1, "beta1": 0.5},
        {"lr": 0.05, "beta1": 0.95, "beta2": 0.8},
        {"lr": 0.5, "weight_decay": 0.1},
        {"lr": 0.1},
        {"lr": 0.03, "beta2": 0.5},
    ),
    check=Close(magnitude=lion_magnitude),
    flops=per_element(9),
    mutates=True,
)
def lion_step(param, grad, exp_avg, lr=0.0001, beta1=0.9, beta2=0.99, weight_decay=0.0):
    """One step of Lion in place: p (1 - lr decay) - lr sign(beta1 m + (1 - beta1) g), then
    m = beta2 m + (1 - beta2) g; the sign of 0 is 0. Tensors of one shape; returns param and
    exp_avg.
    """
    direction = exp_avg.mul(beta1).add_(grad, alpha=1 - beta1).sign_()
    param.mul_(1 - lr * weight_decay).add_(direction, alpha=-lr)
    exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)
    return param, exp_avg


def rmsprop_magnitude(param, grad, square_avg, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0):
    """The terms of the sums; 1 - alpha has the rounding of 1."""
    size = grad.abs() + weight_decay * param.abs()
    decayed = grad + weight_decay * param
    squares = alpha * square_avg + (1 - alpha) * decayed**2
    squares_size = square_avg + size**2
    update = scaled_step(lr, decayed, squares, size, squares_size, squares.sqrt() + eps)
    return param.abs() + update, squares_size


@optimizer(
    "rmsprop_step",
    inputs=with_squares,
    cases=step_cases(
        {},
        {"lr": 0.02, "weight_decay": 0.3},
        {"lr": 0.1, "alpha": 0.5},
        {"lr": 0.05, "eps": 0.01},
        {"weight_decay": 0.1},
        {"lr": 0.1, "eps": 0.5},
        {"lr": 0.03, "alpha": 0.9},
    ),
    check=Close(magnitude=rmsprop_magnitude),
    flops=per_element(9),
    mutates=True,
)
def rmsprop_step(param, grad, square_avg, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0):
    """One step of RMSProp in place: g + decay p for g, v = alpha v + (1 - alpha) g^2, then
    p - lr g / (sqrt(v) + eps). Tensors of one shape; the gradient stays as it is; returns param and
    square_avg.
    """
    decayed = grad.add(param, alpha=weight_decay) if weight_decay else grad
    square_avg.mul_(alpha).addcmul_(decayed, decayed, value=1 - alpha)
    param.addcdiv_(decayed, square_avg.sqrt().add_(eps), value=-lr)
    return param, square_avg


def sgd_magnitude(
    param,
    grad,
    momentum_buffer=None,
    lr=0.1,
    momentum=0.9,
    weight_decay=0.0,
    dampening=0.0,
    nesterov=False,
):
    """|g| + decay |p|, the terms of the buffer, and |p| + lr times the terms of the direction."""
    size = grad.abs() + weight_decay * param.abs()
    if momentum == 0:
        return param.abs() + lr * size, None
    buffer = size if momentum_buffer is None else momentum * momentum_buffer.abs() + size
    return param.abs() + lr * (size + momentum * buffer if nesterov else buffer), buffer


@optimizer(
    "sgd_step",
    inputs=with_buffer,
    cases=step_cases(
        {},
        {"lr": 0.02, "weight_decay": 0.3},
        {"momentum": 0.0, "fresh": True},
        {"momentum": 0.5, "dampening": 0.3},
        {"nesterov": True, "weight_decay": 0.1},
        {"fresh": True, "dampening": 0.5, "nesterov": True},
        {"momentum": 0.0, "fresh": True, "weight_decay": 0.2, "lr": 0.5},
        weight_decay=0.01,
        nesterov=True,
    ),
    check=Close(magnitude=sgd_magnitude),
    flops=per_element(6),
    mutates=True,
)
def sgd_step(
    param,
    grad,
    momentum_buffer=None,
    lr=0.1,
    momentum=0.9,
    weight_decay=0.0,
    dampening=0.0,
    nesterov=False,
):
    """One step of gradient descent in place: g + decay p for g, b = momentum b + (1 - dampening) g,
    then p - lr b, or with `nesterov` p - lr (g + momentum b). Without a buffer the first one is g
    itself; with momentum 0 there is none and p - lr g is taken. Tensors of one shape; the gradient
    stays as it is; returns param and the buffer, or None.
    """
    decayed = grad.add(param, alpha=weight_decay) if weight_decay else grad
    if momentum == 0:
        return param.add_(decayed, alpha=-lr), momentum_buffer
    if momentum_buffer is None:
        momentum_buffer = decayed.clone()
    else:
        momentum_buffer.mul_(momentum).add_(decayed, alpha=1 - dampening)
    direction = decayed.add(momentum_buffer, alpha=momentum) if nesterov else momentum_buffer
    return param.add_(direction, alpha=-lr), momentum_buffer
