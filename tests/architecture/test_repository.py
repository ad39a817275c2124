"""What the README promises to a newcomer is there, and the lock files agree with pyproject.toml."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def wanted(*extras: str) -> set[str]:
    """Names of what pyproject.toml asks for, with these extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"]]
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return {re.split(r"[\[<>=]", line)[0].lower() for line in lines}


def locked(name: str) -> set[tuple[str, str]]:
    """Names and versions in a lock file; a name may have a version per Python."""
    text = (ROOT / "requirements" / name).read_text()
    assert "--hash=sha256:" in text
    return set(re.findall(r"^([a-z0-9_.-]+)==(\S+)", text, re.M))


def test_every_dependency_is_locked_with_hashes() -> None:
    assert wanted("dev") <= {name for name, _ in locked("locked.txt")}


def test_a_sites_own_packages_are_those_that_are_tested_and_no_torch() -> None:
    site = locked("site.txt")
    own = wanted("site")
    assert own <= {name for name, _ in site}
    assert {name for name, _ in site} & {"torch", "triton", "pytest", "ruff"} == set()
    assert {one for one in site if one[0] not in wanted("site") - wanted()} <= locked("locked.txt")


def test_torch_and_triton_are_pinned_as_a_pair() -> None:
    text = (ROOT / "requirements/torch.txt").read_text()
    assert re.search(r"^torch==\S+$", text, re.M)
    assert re.search(r"^triton==\S+$", text, re.M)


def test_repository_names_no_private_path_or_host() -> None:
    suspicious = re.compile(r"file://|/root/|localhost\.localdomain")
    for path in ROOT.glob("requirements/*.txt"):
        assert not suspicious.search(path.read_text()), path
