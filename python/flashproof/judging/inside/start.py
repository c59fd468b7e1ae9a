"""The program of a candidate's process: `python -I start.py REQUESTS ANSWERS SHARED FOLDER`, the first three file descriptors."""

import sys
import types
from pathlib import Path

#: The package's modules go by this name here, so that a candidate which imports flashproof is seen to.
ALIAS = "kernel_process"


def main() -> None:
    """Load what answers requests under another name than flashproof's, and answer until the requests end."""
    root = Path(__file__).resolve().parents[2]
    packages = []
    for name, folder in ((ALIAS, root), (f"{ALIAS}.judging", root / "judging")):
        # Without their __init__.py, which would load what judges.
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
        packages.append(package)
    __import__(f"{ALIAS}.judging.inside.loop")
    loop = sys.modules[f"{ALIAS}.judging.inside.loop"]
    for package in packages:
        package.__path__ = []
    requests, answers, shared = map(int, sys.argv[1:4])
    loop.answer_requests(requests, answers, shared, Path(sys.argv[4]))


if __name__ == "__main__":
    main()
