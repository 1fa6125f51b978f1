"""The papers' own figures for w1a and randn (first paper, ℓ0, Table 1 at 30 s).

Each entry is the objective of the paper's best method, and the gaps above it of LADMM and SPM
from the identity and from a random start and of OBCD-R. Their w1a has another column order, and
their randn is another draw: levels compare, digits do not.
"""

from __future__ import annotations

TABLE_1_METHODS = ("ladmm (id)", "spm (id)", "ladmm (rnd)", "spm (rnd)", "obcd-r (id)")
"""Columns of `TABLE_1`."""

TABLE_1: dict[tuple[str, float, int], tuple[float, tuple[float, ...]]] = {
    ("w1a", 10.0, 20): (-5.2e3, (1.92e3, 4.55e3, 330.0, 805.0, 0.0)),
    ("randn-500-1000", 10.0, 20): (-6.3e3, (1.09e3, 971.0, 890.0, 1.29e3, 0.0)),
    ("w1a", 100.0, 20): (-2.7e3, (2.28e3, 3.9e3, 184.0, 414.0, 0.0)),
    ("randn-500-1000", 100.0, 20): (-3.9e3, (4.1e3, 4.91e3, 3.55e3, 7.03e3, 0.0)),
    ("w1a", 1000.0, 20): (1.5e4, (2.6e3, 3.9e3, 1.48e3, 8.02e3, 0.0)),
    ("randn-500-1000", 1000.0, 20): (1.4e4, (2.53e4, 5.81e4, 2.22e4, 4.92e4, 0.0)),
    ("w1a", 10000.0, 20): (2.0e5, (4.12e4, 3.9e3, 2.02e4, 1.7e5, 0.0)),
    ("randn-500-1000", 10000.0, 20): (1.9e5, (1.11e5, 8.1e5, 3.21e5, 1.52e6, 0.0)),
}
"""(data, λ, r) to (F_min, gaps)."""

LEVELS: dict[tuple[str, str, float, int], tuple[float, str]] = {
    ("w1a", "l0", 1.0, 20): (-6.1e3, "P1 ℓ0, 30 s"),
    ("randn-500-1000", "l0", 1.0, 20): (-1.7e4, "P1 ℓ0, 30 s"),
    ("w1a", "l0", 1.0, 50): (-8.6e3, "P1 ℓ0, 30 s"),
    ("randn-500-1000", "l0", 1.0, 50): (-3.8e4, "P1 ℓ0, 30 s"),
    ("w1a", "l0", 1.0, 100): (-1.2e4, "P1 ℓ0, 30 s"),
    ("randn-500-1000", "l0", 1.0, 100): (-6.7e4, "P1 ℓ0, 30 s"),
    ("w1a", "l1", 1.0, 10): (-5.7e3, "P1 ℓ1, 60 s"),
    ("randn-500-1000", "l1", 1.0, 10): (-1.3e4, "P1 ℓ1, 60 s"),
    ("w1a", "l1", 1.0, 20): (-7.1e3, "P1 ℓ1, 60 s"),
    ("randn-500-1000", "l1", 1.0, 20): (-2.6e4, "P1 ℓ1, 60 s"),
    ("w1a", "l1", 100.0, 20): (-3.3e3, "P1 ℓ1, 60 s"),
    ("randn-500-1000", "l1", 100.0, 20): (-3.9e3, "P1 ℓ1, 60 s"),
    ("w1a", "nonneg", 0.0, 10): (-5.2e3, "P1 X ≥ 0, 60 s"),
    ("randn-500-1000", "nonneg", 0.0, 10): (-6.8e3, "P1 X ≥ 0, 60 s"),
    ("w1a", "nonneg", 0.0, 20): (-6.6e3, "P1 X ≥ 0, 60 s"),
    ("randn-500-1000", "nonneg", 0.0, 20): (-1.1e4, "P1 X ≥ 0, 60 s"),
    ("w1a", "nonneg", 0.0, 100): (-1.2e4, "P1 X ≥ 0, 60 s"),
    ("randn-500-1000", "nonneg", 0.0, 100): (-3.7e4, "P1 X ≥ 0, 60 s"),
}
"""(data, penalty, λ, r) to the papers' best objective and where it stands."""
