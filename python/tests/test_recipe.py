"""The recipe for conda says what the package says."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]
RECIPE = HERE / "conda" / "meta.yaml"


def rendered() -> dict:
    """The recipe as conda-build reads it: its template filled in, then YAML."""
    yaml, jinja2 = pytest.importorskip("yaml"), pytest.importorskip("jinja2")
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(RECIPE.read_text())
    return yaml.safe_load(template.render(PYTHON="python", compiler=lambda of: f"compiler-{of}"))


def project() -> dict:
    tomllib = pytest.importorskip("tomllib", reason="the standard library reads TOML from 3.11 on")
    return tomllib.loads((HERE / "pyproject.toml").read_text())


def parts(requirement: str) -> tuple[str, str]:
    """A requirement's name, and its bounds in one order."""
    name, bounds = re.fullmatch(r"([A-Za-z0-9_-]+)(?:\[.*\])?\s*(.*)", requirement).groups()
    return name.lower(), ",".join(sorted(bounds.replace(" ", "").split(",")))


def test_the_recipe_is_of_this_version_and_needs_what_the_package_needs():
    recipe, package = rendered(), project()["project"]
    assert recipe["package"] == {"name": package["name"], "version": package["version"]}
    python = ("python", package["requires-python"])
    needs = dict([python, *map(parts, package["dependencies"])])
    assert dict(map(parts, recipe["requirements"]["run"])) == needs
    host = dict(map(parts, recipe["requirements"]["host"]))
    builds = dict(map(parts, project()["build-system"]["requires"]))
    assert {name: host[name] for name in builds} == builds and host["python"] == python[1]
    worker = dict(map(parts, package["optional-dependencies"]["worker"]))
    worker["msgpack-python"] = worker.pop("msgpack")  # as conda-forge calls it
    constrained = dict(map(parts, recipe["requirements"]["run_constrained"]))
    assert constrained == worker, "who installs a worker gets what the package was made for"


def test_the_recipe_builds_from_this_folder_and_tries_what_it_built():
    recipe = rendered()
    root = (RECIPE.parent / recipe["source"]["path"]).resolve()
    assert root == HERE.parent
    assert (root / recipe["about"]["license_file"]).is_file()
    assert recipe["about"]["license"] == project()["project"]["license"]
    assert "./python" in recipe["build"]["script"]
    assert recipe["test"] == {"imports": ["era"], "commands": ["era version"]}
    # The program is built by cargo, which needs a compiler and a linker.
    assert recipe["requirements"]["build"] == ["compiler-rust", "compiler-c"]


def test_the_version_is_that_of_the_program():
    cargo = pytest.importorskip("tomllib").loads((HERE.parent / "Cargo.toml").read_text())
    assert project()["project"]["version"] == cargo["workspace"]["package"]["version"]
