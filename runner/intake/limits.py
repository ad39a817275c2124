"""What an upload may hold, each with its reason. Shown beside the upload button."""

from benchmark.vocabulary import MAX_SOURCE_BYTES

MIB = 1024 * 1024

MAX_UPLOAD_BYTES = 32 * MIB
"""One upload, and one file in it: 176 tasks x 8 rounds at the longest published source."""

MAX_CANDIDATES = 2_000
"""One upload, repeats counted: eleven rounds of 176 tasks; more is several submissions."""

MAX_LINE_BYTES = 8 * MAX_SOURCE_BYTES
"""One line of JSONL: JSON spells a byte with up to six; instruction and thoughts come on top."""

MAX_JSON_BYTES = 16 * MIB
"""One metrics.json: 2,000 records with the source that each ran."""

MAX_LINES = 10 * MAX_CANDIDATES
"""Lines of one JSONL file, blank ones counted."""

MAX_PYTHON_BYTES = 4 * MAX_SOURCE_BYTES
"""One .py file before it is cleaned: authors keep long tests below the separator."""

MAX_ROUND = 999
"""The last round: no published method iterated more than a few dozen times."""

MAX_ENTRIES = 3 * MAX_CANDIDATES
"""Entries of an archive, files of a folder: candidates, their folders, and some company."""

MAX_PATH = 1_000
"""Characters of an entry's name in an archive: file systems take 255 of each folder's."""

MAX_FOLDERS = 32
"""Folders around a file: a method's, a round's, a category's and a task's, and some more."""

MAX_UNPACKED_BYTES = 64 * MIB
"""An archive unpacked, all entries together: three times what 2,000 common candidates are."""

MAX_RATIO = 200
"""Unpacked to packed size of one entry: repetitive JSONL reaches 50, a bomb 1,000."""

MAX_REFUSALS = 300
"""Then reading stops: a wrong file has one refusal a line, and nobody reads more."""
