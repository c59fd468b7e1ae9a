"""Puts the npm package with its dependencies into the wheel and the sdist, when these are built from a clone."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = pathlib.Path(__file__).parent
TARGET = HERE / "flashproof" / "_javascript"
#: Names a tarball of the npm package that is to be taken, in the place of one that is packed here.
TARBALL = "FLASHPROOF_TARBALL"


class JavaScriptBuildHook(BuildHookInterface):
    """Runs npm, which a clone needs anyway; who installs the wheel, or the sdist, does not."""

    def initialize(self, version, build_data):
        """Makes `flashproof/_javascript`: what `npm pack` makes, installed without development dependencies."""
        if self.target_name not in ("wheel", "sdist") or version == "editable":
            return
        if (HERE / "PKG-INFO").exists():  # an sdist has it already
            return
        shutil.rmtree(TARGET, ignore_errors=True)
        TARGET.mkdir()
        (TARGET / "package.json").write_text('{"private": true}\n')
        with tempfile.TemporaryDirectory() as folder:
            packed = os.environ.get(TARBALL)
            if packed is None:
                npm("pack", "--pack-destination", folder, cwd=HERE.parent)
                (packed,) = pathlib.Path(folder).glob("*.tgz")
            npm(
                "install",
                "--omit=dev",
                "--no-save",
                "--no-audit",
                "--no-fund",
                str(packed),
                cwd=TARGET,
            )
        shutil.rmtree(TARGET / "node_modules" / ".bin", ignore_errors=True)


def npm(*words, cwd):
    """Runs npm; what it prints is shown where it fails."""
    program = shutil.which("npm")
    if program is None:
        raise RuntimeError(
            "npm is not on PATH; a wheel is built from a clone in which `npm ci` was run"
        )
    run = subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"npm {' '.join(words)} failed:\n{run.stdout}{run.stderr}")
