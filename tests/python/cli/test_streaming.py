"""Files that the command line reads by blocks give the same results as whole files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from orthobcd.cli import main
from orthobcd.io import UnreadableFile
from orthobcd.io.matrices import stream_of

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((5000, 6)) @ np.diag([4.0, 3.0, 2.0, 1.0, 1.0, 1.0])).astype(np.float32)


def files(folder: Path) -> dict[str, Path]:
    paths = {kind: folder / f"x.{kind}" for kind in ("npy", "parquet", "csv")}
    np.save(paths["npy"], X)
    table = pyarrow.table({f"c{k}": X[:, k] for k in range(6)})
    parquet.write_table(table, paths["parquet"], row_group_size=999)
    np.savetxt(paths["csv"], X[:50], delimiter=",")
    return paths


def test_a_stream_has_two_samples_and_two_features(tmp_path):
    for rows in (1, 2, 3):
        for columns in (1, 2, 3):
            data = np.ones((rows, columns))
            np.save(tmp_path / "x.npy", data)
            table = pyarrow.table({str(k): column for k, column in enumerate(data.T)})
            parquet.write_table(table, tmp_path / "x.parquet")
            for path in (tmp_path / "x.npy", tmp_path / "x.parquet"):
                if min(rows, columns) > 1:
                    assert stream_of(path).shape == (rows, columns)
                    continue
                with pytest.raises(UnreadableFile, match="at least 2 samples and 2 features"):
                    stream_of(path)
    with pytest.raises(UnreadableFile, match="at least 2 samples and 2 features"):
        stream_of(tmp_path / "x.npy", columns=[1])


def run(path: Any, folder: Path, *options: str) -> dict[str, Any]:
    report = folder / "report.json"
    command = ["nonneg-pca", str(path), "-r", "2", "--report", str(report), "--force", *options]
    assert main(command) == 0
    return json.loads(report.read_text())


@pytest.mark.parametrize("kind", ["npy", "parquet"])
@pytest.mark.parametrize("options", [[], ["--columns", "5,0,1"], ["--drop", "2", "--scale"]])
def test_a_stream_gives_what_the_file_gives(tmp_path, capsys, kind, options):
    path = files(tmp_path)[kind]
    whole = run(path, tmp_path, *options)
    capsys.readouterr()
    got = run(path, tmp_path, "--max-memory", "1MB", *options)
    said = capsys.readouterr().out
    assert "5000 samples" in said
    assert "features, read by blocks" in said
    for name in ("n_samples", "n_features", "feature_names"):
        assert got[name] == whole[name]
    for name in ("mean", "explained_variance", "objective"):
        np.testing.assert_allclose(got[name], whole[name], rtol=1e-9)


def test_what_does_not_fit_is_refused(tmp_path, capsys):
    paths = files(tmp_path)
    for path, limit, words in (
        (paths["npy"], "100", "second moments of 6 features"),
        (paths["csv"], "100", "--max-memory must be at least the size"),
        (paths["npy"], "apples", "--max-memory must be bytes"),
        (tmp_path / "none.npy", "1MB", "no such file"),
    ):
        assert main(["nonneg-pca", str(path), "--max-memory", limit]) == 2
        assert words in capsys.readouterr().err
    assert main(["nonneg-pca", str(paths["csv"]), "-r", "2", "--max-memory", "1MB"]) == 0
    capsys.readouterr()
    data = X.copy()
    data[4000, 2] = np.nan
    np.save(paths["npy"], data)
    assert main(["nonneg-pca", str(paths["npy"]), "--max-memory", "1MB"]) == 2
    assert "block 1 of X" in capsys.readouterr().err
    assert main(["sparse-pca", str(paths["npy"]), "--max-memory", "1MB", "--missing", "em"]) == 2
    assert "--missing must not be given" in capsys.readouterr().err
