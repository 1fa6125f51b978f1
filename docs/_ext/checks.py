"""The build fails if a page of the site shows LaTeX or Markdown that nothing rendered."""

import re
from pathlib import Path

from sphinx.errors import ExtensionError

HIDDEN = re.compile(r"<(script|style|pre|code|head)\b.*?</\1>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")
RAW = re.compile(
    r"\$\$|\\(?:frac|sum|top|quad|text|begin|min|binom|bigl?|lVert|mathbf)\b|\]\(\S+\)"
)
"""What must not be in the text of a page outside of code."""


def _check(app, exception):
    if exception is not None or app.builder.name != "html":
        return
    raw = []
    for page in sorted(Path(app.outdir).rglob("*.html")):
        text = TAG.sub("", HIDDEN.sub("", page.read_text(encoding="utf-8")))
        raw += [f"{page.relative_to(app.outdir)}: {found.group()}" for found in RAW.finditer(text)]
    if raw:
        raise ExtensionError("not rendered: " + "; ".join(raw))


def setup(app):
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
