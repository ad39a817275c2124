"""How to cite a state of this site's results: BibTeX and CITATION.cff, of our own words."""

from dataclasses import dataclass
from datetime import datetime

TITLE = "KernelBench-X: GPU kernels written by language models, judged"
ABSTRACT = (
    "Verdicts, errors against float64 and paired speedups over PyTorch eager of Triton kernels "
    "for the 176 tasks of KernelBench-X, judged on GPUs."
)
LICENCE = "Apache-2.0"


@dataclass(frozen=True, slots=True)
class Cited:
    """A state of the site: its generation, when results last changed, and where it is."""

    generation: int
    changed_at: datetime
    url: str

    @property
    def version(self) -> str:
        return f"{self.changed_at:%Y-%m-%d}, generation {self.generation}"


def bibtex(cited: Cited) -> str:
    return (
        f"@misc{{kernelbench-x-{key(cited)},\n"
        f"  title        = {{{{{TITLE}}}}},\n"
        "  author       = {{KernelBench-X maintainers}},\n"
        f"  year         = {{{cited.changed_at:%Y}}},\n"
        f"  version      = {{{cited.version}}},\n"
        f"  howpublished = {{\\url{{{cited.url}}}}},\n"
        f"  note         = {{Results as of {cited.changed_at:%Y-%m-%d}; the files' SHA-256 say "
        "which}\n"
        "}\n"
    )


def cff(cited: Cited) -> str:
    return (
        "cff-version: 1.2.0\n"
        "message: If you use these results, cite them with their date and the files' SHA-256.\n"
        "type: dataset\n"
        f'title: "{TITLE}"\n'
        f'abstract: "{ABSTRACT}"\n'
        "authors:\n"
        '  - name: "KernelBench-X maintainers"\n'
        f'version: "{cited.version}"\n'
        f"date-released: {cited.changed_at:%Y-%m-%d}\n"
        f'url: "{cited.url}"\n'
        f"license: {LICENCE}\n"
    )


def key(cited: Cited) -> str:
    return f"{cited.changed_at:%Y%m%d}-{cited.generation}"


FORMATS = {"bib": bibtex, "cff": cff}
TYPES = {"bib": "application/x-bibtex; charset=utf-8", "cff": "text/yaml; charset=utf-8"}
