"""Freedom that factors have, and structure that they must keep."""

import pytest
import torch

from benchmark import suite
from benchmark.suite.spec import Arguments


def judged(name: str, case_name: str, change):
    """PyTorch's answer, changed, against the case's check."""
    task = suite.get(name)
    case = task.case(case_name)
    arguments = task.arguments(case, 3, "cpu")
    answer = change(arguments.args[0], task.reference(arguments))
    return task.compare(case, arguments, [answer], Arguments(arguments.args, arguments.kwargs))


def flipped_svd(A, factors):
    U, S, Vh = factors
    sign = 1 - 2 * (torch.arange(S.shape[-1]) % 2).to(U)
    return U * sign, S, Vh * sign[:, None]


def flipped_qr(A, factors):
    Q, R = factors
    sign = 1 - 2 * (torch.arange(R.shape[-2]) % 2).to(Q)
    return Q * sign, R * sign[:, None]


def reordered_eig(A, found):
    values, V = found
    phase = torch.polar(torch.ones(()), torch.tensor(0.7)).to(V)
    return values.flip(-1), V.flip(-1) * phase


@pytest.mark.parametrize(
    ("name", "case", "change"),
    [
        ("svd", "small-reduced", flipped_svd),
        ("qr", "small-odd", flipped_qr),
        ("eig", "small-odd", reordered_eig),
        ("invert_matrix_lu", "small-odd", lambda A, X: torch.linalg.solve(A, torch.eye(len(A)))),
        ("solve", "small-odd", lambda A, x: torch.linalg.lstsq(A, A @ x[:, None]).solution[:, 0]),
    ],
)
def test_equally_good_answers_pass(name, case, change):
    result = judged(name, case, change)
    assert result.passed, result.detail


def unordered_svd(A, factors):
    U, S, Vh = factors
    return U.flip(-1), S.flip(-1), Vh.flip(-2)


def negative_svd(A, factors):
    U, S, Vh = factors
    return -U, -S, Vh


def gram_svd(A, factors):
    """Out of the eigenvalues of A^T A: half of the digits are lost."""
    values, V = torch.linalg.eigh(A.mT @ A)
    S = values.flip(-1).clamp(min=0).sqrt()
    return (A @ V.flip(-1)) / S, S, V.flip(-1).mT.contiguous()


def one_eigenpair(A, found):
    values, V = found
    return values[:1].expand_as(values).clone(), V[:, :1].expand_as(V).clone()


def long_columns(A, found):
    return found[0], 2 * found[1]


def tiny_below_the_diagonal(A, factors):
    Q, R = factors
    R = R.clone()
    R[1, 0] = 1e-30
    return Q, R


def unpivoted(A, factors):
    P = torch.eye(A.shape[-1])
    L, U = torch.eye(A.shape[-1]), A.clone()
    for j in range(len(A)):
        L[j + 1 :, j] = U[j + 1 :, j] / U[j, j]
        U[j + 1 :] -= L[j + 1 :, j, None] * U[j]
    return P, L, U.triu()


def published_inverse(A, X):
    """U^-1 L^-1 P instead of P^T."""
    P, L, U = torch.linalg.lu(A)
    return torch.linalg.inv(U) @ torch.linalg.inv(L) @ P


def published_ldl(A, x):
    """The pivots' indices as the diagonal."""
    LD, pivots = torch.linalg.ldl_factor(A)
    L = LD.tril(-1) + torch.eye(len(A))
    return torch.linalg.solve(L @ torch.diag(pivots.float()) @ L.mT, A @ x)


@pytest.mark.parametrize(
    ("name", "case", "change"),
    [
        ("svd", "small-odd", unordered_svd),
        ("svd", "small-odd", negative_svd),
        ("svd", "small-odd", gram_svd),
        ("eig", "small-odd", one_eigenpair),
        ("eig", "small-odd", long_columns),
        ("qr", "small-odd", tiny_below_the_diagonal),
        ("lu", "small-odd", unpivoted),
        ("invert_matrix_lu", "small-odd", published_inverse),
        ("solve_symmetric_ldl", "small-odd", published_ldl),
        ("low_rank_svd_approximation", "small-odd", lambda A, X: A.clone()),
        ("pseudoinverse_svd", "small-deficient", lambda A, X: torch.linalg.pinv(A)),
        ("matrix_power_eig", "small-root", lambda A, X: A.clone()),
        ("det", "small-tiles", lambda A, d: -d),
        ("ldl_factor", "small-hollow", lambda A, f: (f[0], f[1].abs())),
        ("ldl_factor", "small-odd", lambda A, f: (f[0], torch.arange(1, len(A) + 1).int())),
    ],
)
def test_wrong_structure_and_published_mistakes_fail(name, case, change):
    assert not judged(name, case, change).passed


@pytest.mark.parametrize("name", ["ldl_factor", "svd", "qr", "lu", "eig"])
def test_factors_of_noise_fail(name):
    def noise(A, factors):
        torch.manual_seed(0)
        return tuple(
            torch.randn_like(f) if f.is_floating_point() or f.is_complex() else f for f in factors
        )

    assert not judged(name, "small-odd", noise).passed


def test_what_a_call_writes_besides_its_output_is_judged():
    task = suite.get("matrix_vector_dot")
    case = task.case("small-odd")
    arguments = task.arguments(case, 3, "cpu")
    A, x, y = arguments.args
    new = 0.5 * (A @ x) + 2.0 * y
    untouched = task.compare(case, arguments, [torch.dot(new, x)], arguments)
    assert untouched.detail.startswith("argument[2]")
    written = task.compare(
        case, arguments, [torch.dot(new, x)], Arguments((A, x, new), arguments.kwargs)
    )
    assert written.passed, written.detail
