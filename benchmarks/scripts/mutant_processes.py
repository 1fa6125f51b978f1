"""The processes of `mutants.py`: they measure tests, or run tests with a changed package."""

from __future__ import annotations

import ast
import compileall
import contextlib
import gc
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import coverage
import pytest
from mutant_changes import Mutant, functions

ROOT = Path(__file__).parents[2]

PYTEST = ("-q", "-s", "-p", "no:cacheprovider")
"""Options of pytest."""

INSTALLED = next(p / "orthobcd" for p in map(Path, sys.path) if (p / "orthobcd/_core.pyi").exists())
"""The folder of the package."""


def live_functions() -> list[types.FunctionType]:
    """The functions of the package that this process has imported."""
    return [
        one
        for one in gc.get_objects()
        if isinstance(one, types.FunctionType)
        and one.__code__.co_filename.startswith(f"{INSTALLED}/")
    ]


def replace_functions(live: list[types.FunctionType], path: str, tree: ast.Module) -> bool:
    """Gives the functions of an imported module the code of ``tree``; False if none changes."""
    name = str(INSTALLED / path)
    codes = {(code.co_qualname, code.co_firstlineno): code for code in functions(tree, name)}
    found = False
    for one in live:
        if one.__code__.co_filename == name:
            code = codes.get((one.__code__.co_qualname, one.__code__.co_firstlineno))
            if code is not None and code != one.__code__:
                one.__code__ = code
                found = True
    return found


def measure(tests: list[pytest.Item], inside: dict[str, set[int]]) -> bool:
    """Writes which of the tests pass, their seconds, and their lines of functions, to a file."""
    folder = Path(tempfile.gettempdir())
    # Processes that a test starts take the name of the test from the environment.
    settings = ["[run]", "parallel = true", "context = ${PYTEST_CURRENT_TEST}"]
    settings += ["disable_warnings = no-data-collected", f"include = {INSTALLED}/*"]
    settings += [f"data_file = {folder}/data/one"]
    (folder / "data").mkdir()
    (folder / "settings").write_text("\n".join(settings))
    (folder / "sitecustomize.py").write_text("import coverage\ncoverage.process_startup()\n")
    os.environ["PYTHONPATH"] = str(folder)
    os.environ["COVERAGE_PROCESS_START"] = str(folder / "settings")
    known = coverage.Coverage(data_file=None, config_file=False, include=[f"{INSTALLED}/*"])
    known.set_option("run:disable_warnings", ["no-data-collected"])
    found: dict[str, Any] = {}
    known.start()
    for test, following in itertools.zip_longest(tests, tests[1:]):
        known.switch_context(test.nodeid)
        failed, begun = test.session.testsfailed, time.monotonic()
        test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        seconds = time.monotonic() - begun
        passed = test.session.testsfailed == failed
        found[test.nodeid] = {"passed": passed, "seconds": seconds, "lines": {}}
    known.stop()
    tables = [known.get_data()]
    for one in (folder / "data").iterdir():
        # A process that is killed leaves no table, or a part of one.
        with contextlib.suppress(coverage.CoverageException):
            table = coverage.CoverageData(str(one))
            table.read()
            tables.append(table)
    for table, path in itertools.product(tables, inside):
        for line, contexts in table.contexts_by_lineno(str(INSTALLED / path)).items():
            for name in {context.rpartition(" (")[0] or context for context in contexts}:
                if name in found and line in inside[path]:
                    found[name]["lines"].setdefault(path, []).append(line)
    (folder / "measured").write_text(json.dumps(found))
    return True


class Noticed:
    """A plugin of pytest that writes the names of the tests that fail to a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called by pytest after a test."""
        if report.failed:
            with self.file.open("a") as file:
                file.write(f"\n{report.nodeid}")


class Workplace:
    """A copy of the package for one mutant after the other, and a folder for files of tests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files, self.notice = folder, folder / "files", folder / "notice"
        shutil.copytree(INSTALLED, folder / "orthobcd")
        compileall.compile_dir(folder, quiet=2)

    def fork(self, work: Callable[[], bool]) -> int:
        """The number of a process that exits with 0 if ``work()`` is true."""
        shutil.rmtree(self.files, ignore_errors=True)
        self.files.mkdir()
        child = os.fork()
        if child == 0:
            os.setsid()
            with open(self.files / "output", "w") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            tempfile.tempdir = os.environ["TMPDIR"] = str(self.files)
            os.environ["PYTHONPATH"] = str(self.folder)
            passed = False
            try:
                passed = work()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(not passed)
        return child

    def test(
        self,
        mutant: Mutant,
        tree: ast.Module,
        tests: list[pytest.Item],
        live: list[types.FunctionType],
    ) -> int:
        """The number of a process that exits with 0 if all tests pass with the mutant."""
        new = mutant.changed(tree) if mutant.old is not mutant.new else tree
        self.notice.write_text("no test")
        path = self.folder / "orthobcd" / mutant.path
        path.write_text(ast.unparse(new), encoding="utf-8")

        def work() -> bool:
            if not replace_functions(live, mutant.path, new):
                os.environ["PYTEST_ADDOPTS"] = ""
                sys.path.insert(0, str(self.folder))
                for name, module in list(sys.modules.items()):
                    file = getattr(module, "__file__", None) or ""
                    # Folders without an __init__.py, such as _internal, are modules without a file.
                    ours = file.startswith(str(ROOT)) and "site-packages" not in file
                    own = ours or name.partition(".")[0] == "orthobcd"
                    # A second copy of the compiled module would have exceptions of its own.
                    if own and "_core" not in name:
                        del sys.modules[name]
                options = [*PYTEST, *(() if new is tree else ("-x",))]
                names = [test.nodeid for test in tests]
                return pytest.main([*options, *names], plugins=[Noticed(self.notice)]) == 0
            for test, following in itertools.zip_longest(tests, tests[1:]):
                test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
                if test.session.testsfailed:
                    self.notice.write_text(test.nodeid)
                    return False
            return True

        return self.fork(work)

    def restore(self, mutant: Mutant) -> None:
        """Undoes the change of the copy."""
        shutil.copy2(INSTALLED / mutant.path, self.folder / "orthobcd" / mutant.path)
