"""The command line: `python -m flashproof audit …` is `npx flashproof audit …`."""

import subprocess
import sys

from .node import NodeNotFoundError, node, program


def main() -> int:
    """Run the command line with this process's words; its exit status."""
    if sys.argv[1:2] == ["judge"]:
        # Candidates are Python: their judge is.
        from .judging.command import main as judge

        return judge(sys.argv[2:])
    try:
        return subprocess.call([node(), program(), *sys.argv[1:]])
    except NodeNotFoundError as error:
        print(f"flashproof: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
