"""The recipes of the page on knowledge graphs."""

from __future__ import annotations

import importlib.util
import re

import pytest

import orthobcd as ob

from ..conftest import ROOT

RECIPE = re.compile(r"^```\{code-block\} python\n(parts = .*?)^```", re.M | re.S)


def recipe(name: str) -> str:
    text = (ROOT / "docs/knowledge-graphs.md").read_text("utf-8")
    return next(block for block in RECIPE.findall(text) if f'"{name}_{{part}}.tsv.gz"' in block)


@pytest.mark.parametrize("name", ["wn18rr", "fb15k237"])
def test_recipes_have_the_measured_settings(name):
    path = ROOT / "benchmarks/scripts/ultra_e.py"
    spec = importlib.util.spec_from_file_location("ultra_e", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    model = re.search(r"^model = .*?(?=\.fit\(graph\)$)", recipe(name), re.M | re.S)
    names: dict = {"ob": ob}
    exec(model.group(), names)
    expected = ob.kg.UltraE(**script.WHOLE[name]).get_params()
    assert names["model"].get_params() == expected


@pytest.mark.long
@pytest.mark.data
def test_a_recipe_runs(data_dir, monkeypatch, capsys):
    if not (data_dir / "wn18rr_train.tsv.gz").exists():
        pytest.skip("wn18rr_train.tsv.gz is not there")
    monkeypatch.chdir(data_dir)
    # With fewer dimensions the recipe takes seconds.
    small = recipe("wn18rr").replace("max_epochs=100", "max_epochs=1, seed=1")
    exec(small.replace("dim=128", "dim=48"), {"ob": ob})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 13
    assert lines[-1].split()[:2] == ["all", "3134"]
