"""Paths of the judging host, which messages of Python and its libraries quote, are nobody's
business. Standard library only.
"""

import sysconfig
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_LIBRARIES = {*map(sysconfig.get_path, ("purelib", "platlib", "stdlib", "platstdlib")), str(_ROOT)}
FOLDERS = tuple(sorted((f"{folder}/" for folder in _LIBRARIES), key=len, reverse=True))


def without_folders(tree: Any) -> Any:
    """A JSON tree whose texts name files of libraries, Python and ours without the folders that
    they lie in: `triton/language/math.py`.
    """
    if isinstance(tree, str):
        for folder in FOLDERS:
            tree = tree.replace(folder, "")
        return tree
    if isinstance(tree, dict):
        return {name: without_folders(value) for name, value in tree.items()}
    return [without_folders(value) for value in tree] if isinstance(tree, list) else tree
