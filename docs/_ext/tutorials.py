"""Tutorials: a page of text, a script in named parts, and what each part prints.

A part of ``NAME.py`` stands between ``# [start:PART]`` and ``# [end:PART]``. ``NAME.out`` has what
it prints below a line ``[PART]``. In ``NAME.md`` the directive ``{part} PART`` shows both, and
``{downloads}`` offers the script and a notebook, which is made from the page.

``python docs/_ext/tutorials.py docs/tutorials/NAME.py`` runs a script, writes ``NAME.out`` and
writes its figures to ``docs/images``.
"""

import contextlib
import io
import json
import re
import sys
from pathlib import Path

PART = re.compile(r"^# \[start:(\w+)\]\n(.*?)^# \[end:\1\]\n", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"^```\{part\} (\w+)\n```\n", re.MULTILINE)
OUTPUT = re.compile(r"^\[(\w+)\]\n(.*?)(?=^\[\w+\]\n|\Z)", re.MULTILINE | re.DOTALL)


def parts(script: Path) -> dict[str, str]:
    """The code of each part, without marks for linters."""
    text = script.read_text(encoding="utf-8").replace("  # noqa: E402", "")
    return dict(PART.findall(text))


def outputs(script: Path) -> dict[str, str]:
    """What each part prints, as committed."""
    return dict(OUTPUT.findall(script.with_suffix(".out").read_text(encoding="utf-8")))


def run(script: Path) -> tuple[dict[str, str], dict]:
    """Run a script piece by piece: what each part prints, and its names afterwards."""
    source = script.read_text(encoding="utf-8")
    names = {"__name__": "tutorial", "__file__": str(script)}
    printed, end = {}, 0
    for found in PART.finditer(source):
        for part, code, line in (
            ("", source[end : found.start()], source[:end].count("\n")),
            (found[1], found[0], source[: found.start()].count("\n")),
        ):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("\n" * line + code, str(script), "exec"), names)
            if out.getvalue():
                printed[part] = out.getvalue()
        end = found.end()
    exec(compile("\n" * source[:end].count("\n") + source[end:], str(script), "exec"), names)
    return printed, names


def notebook(page: Path, code: dict[str, str]) -> str:
    """The page as a notebook: its text, and its parts as cells."""
    text = re.sub(r"^```\{downloads\}\n```\n", "", page.read_text(encoding="utf-8"), flags=re.M)
    text = re.sub(r"^!\[.*\]\(.*\)\n", "", text, flags=re.MULTILINE)
    cells = []
    for index, piece in enumerate(CELL.split(text)):
        source = code[piece] if index % 2 else piece
        if source.strip():
            kind = "code" if index % 2 else "markdown"
            cell = {"id": f"cell{index}", "cell_type": kind, "metadata": {}}
            cell["source"] = source.strip().splitlines(keepends=True)
            cells.append(cell | ({"execution_count": None, "outputs": []} if index % 2 else {}))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def setup(app):
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    folder = Path(app.srcdir) / "tutorials"
    made = folder / "_notebooks"
    made.mkdir(exist_ok=True)
    for script in folder.glob("*.py"):
        text = notebook(script.with_suffix(".md"), parts(script))
        (made / f"{script.stem}.ipynb").write_text(text, encoding="utf-8")

    class Part(SphinxDirective):
        required_arguments = 1

        def run(self):
            script = (Path(self.env.srcdir) / self.env.docname).with_suffix(".py")
            for file in (script, script.with_suffix(".out")):
                self.env.note_dependency(str(file))
            code = parts(script)[self.arguments[0]].strip()
            blocks = [nodes.literal_block(code, code, language="python")]
            if printed := outputs(script).get(self.arguments[0], "").rstrip():
                blocks.append(
                    nodes.literal_block(printed, printed, language="text", classes=["output"])
                )
            return blocks

    class Downloads(SphinxDirective):
        def run(self):
            name = Path(self.env.docname).name
            text = (
                f"Download: {{download}}`script <{name}.py>`, "
                f"{{download}}`notebook <_notebooks/{name}.ipynb>`."
            )
            return self.parse_text_to_nodes(text)

    app.add_directive("part", Part)
    app.add_directive("downloads", Downloads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        path = Path(argument)
        printed, names = run(path)
        text = "".join(f"[{part}]\n{lines}" for part, lines in printed.items())
        path.with_suffix(".out").write_text(text, encoding="utf-8")
        names["save"](path.parent.parent / "images")
