"""Source text as highlighted HTML with line numbers. Pygments escapes; nothing is executed."""

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight  # type: ignore[import-untyped]  # pygments ships no types
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]  # as above
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]  # as above


def listing(source: str, anchor: str = "L") -> SafeString:
    """A table of line numbers and code; each line can be linked to as #L-12."""
    formatter = HtmlFormatter(
        linenos="table", lineanchors=anchor, anchorlinenos=True, cssclass="source", wrapcode=True
    )
    html = highlight(source, PythonLexer(stripnl=False), formatter)
    return mark_safe(html)  # noqa: S308  the formatter escapes every token
