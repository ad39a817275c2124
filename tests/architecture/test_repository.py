"""What the README promises to a newcomer is there, and the lock files agree with pyproject.toml."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_dependency_is_locked_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    names = {re.split(r"[\[<>=]", line)[0].lower() for line in wanted}
    locked = dict(
        re.findall(r"^([a-z0-9_.-]+)==(\S+)", (ROOT / "requirements/locked.txt").read_text(), re.M)
    )
    assert names <= set(locked)
    assert "--hash=sha256:" in (ROOT / "requirements/locked.txt").read_text()


def test_torch_and_triton_are_pinned_as_a_pair() -> None:
    text = (ROOT / "requirements/torch.txt").read_text()
    assert re.search(r"^torch==\S+$", text, re.M)
    assert re.search(r"^triton==\S+$", text, re.M)


def test_repository_names_no_private_path_or_host() -> None:
    suspicious = re.compile(r"file://|/root/|localhost\.localdomain")
    for path in ROOT.glob("requirements/*.txt"):
        assert not suspicious.search(path.read_text()), path
