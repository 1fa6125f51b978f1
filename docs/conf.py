"""Settings of the documentation; `make docs` builds it into out/site, warnings are errors."""

import os
import sys
from pathlib import Path

import tomllib

import orthobcd

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

OWNER = tomllib.loads((Path(__file__).parents[1] / "owner.toml").read_text(encoding="utf-8"))
# A placeholder is left out of the pages.
REPOSITORY, SITE = (
    "" if "OWNER" in OWNER[name] else OWNER[name] for name in ("repository", "documentation")
)

project = "orthobcd"
author = copyright = OWNER["authors"]
version = release = orthobcd.__version__

extensions = [
    "checks",
    "docstrings",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_ext", "tutorials"]
default_role = "py:obj"
nitpicky = False
# Quotes in types and defaults are code.
smartquotes = False

myst_heading_anchors = 4

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
autosummary_generate = False
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

# These tutorials need real data; without the data their pages have no outputs and no pictures.
ON_REAL_DATA = "gene_expression|knowledge_graph|text_topics"
DATA = os.environ.setdefault("ORTHOBCD_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery",
    "filename_pattern": "" if Path(DATA).is_dir() else rf"/(?!{ON_REAL_DATA})\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": (),
    "download_all_examples": False,
    "only_warn_on_example_error": True,
    "show_signature": False,
    "write_computation_times": False,
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"orthobcd {release}"
html_baseurl = SITE
html_static_path = ["_static"]
html_css_files = ["orthobcd.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "github_url": REPOSITORY,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "article_header_start": ["breadcrumbs"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
