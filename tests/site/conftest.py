"""Rows for tests of the whole site, made by the factories that the pages' tests use."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def make() -> ModuleType:
    """By path: pytest's importlib mode has no package to import them from."""
    path = Path(__file__).parents[1] / "leaderboard/factories.py"
    spec = importlib.util.spec_from_file_location("site_factories", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
