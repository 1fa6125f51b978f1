"""Docstrings that were written for other readers than reStructuredText's parser.

Those that estimators inherit from scikit-learn refer to pages of its site. Bars are absolute
values.
``{docstring} MODULE`` shows that of a module, which is Markdown.
"""

import importlib
import inspect
import re

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

ROLE = re.compile(r":(?:ref|term|doc|class|meth|func):`~?([^`<]*?)(?:\s*<[^`]*>)?`")


def _process(app, what, name, thing, options, lines):
    foreign = (getattr(thing, "__module__", None) or "").startswith("sklearn")
    for index, line in enumerate(lines):
        text = line
        if foreign:
            text = ROLE.sub(lambda found: f"``{found[1].strip()}``", text)
        if "|" in text and ">>>" not in text:
            pieces = re.split(r"(``.*?``)", text)
            text = "".join(p if p.startswith("``") else p.replace("|", r"\|") for p in pieces)
        lines[index] = text


class Docstring(SphinxDirective):
    required_arguments = 1

    def run(self):
        module = importlib.import_module(self.arguments[0])
        lines = inspect.getdoc(module).splitlines()[1:]
        lines = [
            re.sub(r"(?<!`)`(\w[\w.]*)`(?!`)", r"`\1`", line).replace("``", "`") for line in lines
        ]
        container = nodes.container()
        self.state.nested_parse(StringList(lines, source=self.arguments[0]), 0, container)
        return container.children


def setup(app):
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", _process, priority=900)
    app.add_directive("docstring", Docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
