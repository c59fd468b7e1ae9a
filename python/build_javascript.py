"""Puts the npm package with its dependencies into the wheel and the sdist, when these are built from a clone."""

import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = pathlib.Path(__file__).parent
TARGET = HERE / "flashproof" / "_javascript"
#: What the wheel consists of (CycloneDX), which lies in its `.dist-info/sboms` (PEP 770).
MATERIALS = "flashproof.cdx.json"
#: Names a tarball of the npm package that is to be taken, in the place of one that is packed here.
TARBALL = "FLASHPROOF_TARBALL"


class JavaScriptBuildHook(BuildHookInterface):
    """Runs npm, which a clone needs anyway; who installs the wheel, or the sdist, does not."""

    def initialize(self, version, build_data):
        """Makes `flashproof/_javascript`: what `npm pack` makes, with the packages that the lock file names and no others."""
        if self.target_name not in ("wheel", "sdist") or version == "editable":
            return
        if not (HERE / "PKG-INFO").exists():  # an sdist has it already
            make_javascript(HERE.parent)
        if "sbom_files" in build_data:  # a wheel's, by a hatchling that knows them
            build_data["sbom_files"].append(MATERIALS)


def make_javascript(clone):
    """Makes the folder and the bill of materials, of a clone in which `npm ci` was run."""
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir()
    (TARGET / "package.json").write_text('{"private": true}\n')
    with tempfile.TemporaryDirectory() as folder:
        packed = os.environ.get(TARBALL)
        if packed is None:
            # Its script `prepare` builds dist, which takes most of the time of an installation.
            built = ["--ignore-scripts"] if is_built(clone) else []
            run("npm", "pack", *built, "--pack-destination", folder, cwd=clone)
            (packed,) = pathlib.Path(folder).glob("*.tgz")
        with tarfile.open(packed) as archive:
            archive.extractall(folder)
        shutil.copytree(pathlib.Path(folder) / "package", TARGET / "node_modules" / "flashproof")
    for place in locked_packages(clone):
        shutil.copytree(
            clone / place, TARGET / place, ignore=shutil.ignore_patterns("node_modules")
        )
    script = clone / "scripts" / "release" / "bill-of-materials.mjs"
    run("node", str(script), "pypi", str(HERE / MATERIALS), cwd=clone)


def is_built(clone):
    """Whether dist is newer than all that it is built of: scripts/build.mjs dates it by the moment when its build began."""
    dist = clone / "dist"
    if not dist.exists():
        return False
    inputs = [clone / name for name in ("tsconfig.json", "tsconfig.build.json", "package.json")]
    for folder in ("src", "oracles", "kernels", "properties", "types", "scripts"):
        inputs += [path for path in (clone / folder).rglob("*") if path.is_file()]
    newest = max(path.stat().st_mtime for path in inputs if not path.name.endswith(".generated.ts"))
    return newest < dist.stat().st_mtime


def locked_packages(clone):
    """The folders of the packages that the program needs when it runs, by the lock file; each has the version named there."""
    packages = json.loads((clone / "package-lock.json").read_text())["packages"]
    for place, entry in packages.items():
        # One wheel is for all platforms: what is optional is built for one.
        if place == "" or any(
            entry.get(kind) for kind in ("dev", "optional", "devOptional", "peer")
        ):
            continue
        manifest = clone / place / "package.json"
        found = json.loads(manifest.read_text())["version"] if manifest.exists() else "not there"
        if found != entry["version"]:
            raise RuntimeError(
                f"{place} is {found} and the lock file's is {entry['version']}; run `npm ci` in {clone}"
            )
        yield place


def run(command, *words, cwd):
    """Runs a program of Node.js; what it prints is shown where it fails."""
    program = shutil.which(command)
    if program is None:
        raise RuntimeError(
            f"{command} is not on PATH; a wheel is built from a clone in which `npm ci` was run"
        )
    done = subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command} {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
