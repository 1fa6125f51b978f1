"""Writes the values of owner.toml, and the version of Cargo.toml, into the files that show them.

From the root of a checkout (Python 3.11 or newer)::

    python tools/owner.py             # write
    python tools/owner.py --check     # fail if a file is out of step
    python tools/owner.py --release   # the same, and fail if a value is still a placeholder
    python tools/owner.py --readme    # README.md with absolute links, for the package index
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
PLACEHOLDER = "OWNER"
LINK = re.compile(r"\]\((?!https?://|#)([^)]+)\)")


def values() -> dict[str, str]:
    """The values of owner.toml, and the version."""
    owner = tomllib.loads((ROOT / "owner.toml").read_text(encoding="utf-8"))
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    return {**owner, "version": cargo["workspace"]["package"]["version"]}


FIELDS: dict[str, list[tuple[str, str]]] = {
    "pyproject.toml": [
        (r'^(authors = \[\{ name = ").*(" \}\])$', "authors"),
        (r'^(maintainers = \[\{ name = ").*(" \}\])$', "authors"),
        (r'^(Documentation = ").*(")$', "documentation"),
        (r'^(Repository = ").*(")$', "repository"),
        (r'^(Changelog = ").*(/changelog.html")$', "documentation"),
        (r'^(Issues = ").*(/issues")$', "repository"),
    ],
    "Cargo.toml": [
        (r'^(authors = \[").*("\])$', "authors"),
        (r'^(homepage = ").*(")$', "documentation"),
        (r'^(repository = ").*(")$', "repository"),
    ],
    "CITATION.cff": [
        (r"^(version: ).*()$", "version"),
        (r"^(  - name: ).*()$", "authors"),
        (r"^(repository-code: ).*()$", "repository"),
        (r"^(url: ).*()$", "documentation"),
    ],
    "docs/citing.md": [(r"^(  version = \{).*(\})$", "version")],
    "SECURITY.md": [(r"(\[private report\]\().*(/security/advisories/new\))", "repository")],
    "CODE_OF_CONDUCT.md": [(r"(<mailto:).*(>)", "contact")],
    ".github/ISSUE_TEMPLATE/config.yml": [
        (r"^(    url: ).*(/faq.html)$", "documentation"),
        (r"^(    url: ).*(/security/advisories/new)$", "repository"),
    ],
}
"""Lines that show a value: what stands before and after it, and its name."""


def filled(name: str, known: dict[str, str]) -> str:
    """The text of a file with its values."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for pattern, key in FIELDS[name]:
        text, found = re.subn(
            pattern, lambda m, k=key: m[1] + known[k] + m[2], text, flags=re.MULTILINE
        )
        if not found:
            raise SystemExit(f"{name} has no line for {key}: {pattern}")
    return text


def absolute(text: str, known: dict[str, str]) -> str:
    """README.md for a package index: pages of the manual, files and pictures by address."""
    repository, tag = known["repository"], f"v{known['version']}"
    raw = repository.replace("https://github.com/", "https://raw.githubusercontent.com/")

    def address(found: re.Match[str]) -> str:
        path, mark, anchor = found[1].partition("#")
        if path.startswith("docs/") and path.endswith(".md"):
            page = path.removeprefix("docs/").removesuffix(".md")
            return f"]({known['documentation']}/{page}.html{mark}{anchor})"
        if path.endswith((".png", ".svg")):
            return f"]({raw}/{tag}/{path})"
        return f"]({repository}/blob/{tag}/{path}{mark}{anchor})"

    return LINK.sub(address, text)


def main(arguments: list[str]) -> None:
    known = values()
    if "--readme" in arguments:
        readme = ROOT / "README.md"
        readme.write_text(absolute(readme.read_text("utf-8"), known), encoding="utf-8")
        return
    check = bool({"--check", "--release"} & set(arguments))
    for name in FIELDS:
        text = filled(name, known)
        if check and text != (ROOT / name).read_text(encoding="utf-8"):
            raise SystemExit(f"{name} is out of step: python tools/owner.py")
        if not check:
            (ROOT / name).write_text(text, encoding="utf-8")
    open_ = [key for key, value in known.items() if PLACEHOLDER in value]
    if "--release" in arguments and open_:
        raise SystemExit(f"owner.toml: {', '.join(open_)} must be set before a release")


if __name__ == "__main__":
    main(sys.argv[1:])
