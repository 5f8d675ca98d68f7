"""PyTorch for tests that run it for real: fetched once a machine, and kept outside of the clone.

What PyPI has for Linux is built for CUDA, whose libraries are several gigabytes more. A machine
without a GPU never calls them, so empty ones take their place; PyTorch itself is all there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSION = "2.15.0"
WITH_IT = "filelock fsspec jinja2 markupsafe mpmath networkx numpy sympy typing_extensions".split()
# What tasks find as `python3`: not the one that runs the tests.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class NotHere(Exception):
    """PyTorch cannot be had on this machine."""


def said(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def folder() -> Path:
    """Where it is kept. Tasks of root's run under ids of their own, which do not see its home."""
    own = "/var/cache" if os.geteuid() == 0 else os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(own).expanduser() / "era-tests"


def torch() -> Path:
    """A folder for `PYTHONPATH` with PyTorch in it."""
    python = shutil.which("python3", path=PATH)
    if not python:
        raise NotHere("tasks find no python3 on this machine")
    version = said(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    place = folder() / f"torch-{VERSION}-python-{version}"
    if place.is_dir():
        return place
    made = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=place.parent))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pip += ["--no-deps", "--only-binary=:all:", f"--python-version={version}"]
        said(*pip, "--no-compile", f"--target={made}", f"torch=={VERSION}", *WITH_IT)
        if sys.platform == "linux":
            fill_in(made / "torch" / "lib")
        made.chmod(0o755)
        made.rename(place)
    except (OSError, subprocess.CalledProcessError) as error:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        if place.is_dir():
            # Somebody else was faster.
            return place
        why = getattr(error, "stderr", None) or str(error)
        raise NotHere(f"PyTorch cannot be installed: {why.strip().splitlines()[-1]}") from error
    return place


def fill_in(lib: Path) -> None:
    """Makes libraries of CUDA that have every name that PyTorch looks for, and do nothing."""
    versions: dict[str, set[str]] = {}
    lacking, defined = set(), set()
    for path in lib.glob("*.so*"):
        about = said("readelf", "--wide", "--dynamic", "--version-info", "--dyn-syms", path)
        for name in re.findall(r"\(NEEDED\).*\[(.+)\]", about):
            versions.setdefault(name, set())
        file = ""
        for kind, name in re.findall(r"(File|Name): (\S+)", about):
            if kind == "File":
                file = name
            else:
                versions.setdefault(file, set()).add(name)
        symbol = r" (\S+) (\w+)(@\S+)?(?: \(\d+\))?$"
        for where, name, version in re.findall(symbol, about, re.MULTILINE):
            if where == "UND":
                lacking.add((name, version.strip("@")))
            elif where.isdigit():
                defined.add(name)
    cuda = re.compile("(lib)?(cu|nv|nccl|__cuda)")
    # Those without a version may be in any of them.
    rest = {name for name, version in lacking if not version and cuda.match(name)} - defined
    for library in sorted(versions):
        if not cuda.match(library) or (lib / library).exists():
            continue
        script = ""
        names, rest = rest, set()
        for version in sorted(versions[library]):
            of = {name for name, wanted in lacking if wanted == version}
            names |= of
            script += f"{version} {{ global: {''.join(f'{name}; ' for name in sorted(of))}}};\n"
        with tempfile.TemporaryDirectory() as made:
            code, exported = Path(made, "empty.c"), Path(made, "empty.map")
            code.write_text("".join(f"long {name}(void) {{ return 0; }}\n" for name in names))
            exported.write_text(script)
            link = [f"-Wl,--version-script={exported}"] if script else []
            cc = ["cc", "-w", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{library}"]
            said(*cc, *link, "-o", str(lib / library), code)
