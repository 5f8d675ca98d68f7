"""Puts the `era` program into the wheel, so that installing the package installs the command line.

`ERA_BINARY` names a program that is already built. Without it, cargo builds one in the project that
this folder stands in. A wheel with a program in it is for one kind of machine, and says so.
"""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommandLine(BuildHookInterface):
    """Adds the program to the wheel's scripts."""

    def initialize(self, version, build_data):
        # An editable installation is for those who build the program themselves.
        if version == "editable":
            return
        program = built() or build(Path(self.root).parent)
        build_data["shared_scripts"][str(program)] = "era"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        # Any Python 3 will do: nothing in the package is compiled against it.
        build_data["tag"] = f"py3-none-{platform}"


def built():
    """The program that `ERA_BINARY` names."""
    named = os.environ.get("ERA_BINARY")
    if not named:
        return None
    program = Path(named).resolve()
    if not program.is_file():
        raise FileNotFoundError(f"ERA_BINARY is {named}, and there is no such file")
    return program


def build(project):
    """Has cargo build the program of the project around this folder."""
    if not (project / "Cargo.toml").is_file() or shutil.which("cargo") is None:
        raise RuntimeError(
            "the wheel carries the program `era`, and it cannot be built here: install Rust and "
            "build inside the project, or set ERA_BINARY to a program that is built already"
        )
    subprocess.run([project / "scripts" / "release"], check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", project / "target"))
    return (project / target / "shipped" / "era").resolve()
