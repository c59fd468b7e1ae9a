"""`python -m flashproof judge`: the judge on the command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..node import NodeNotFoundError
from .budget import Budget
from .candidate import Candidate, CandidateLike
from .forms import backendbench, gpu_mode, kernelbench
from .judge import judge

_FORMS: Mapping[str, Callable[[str], CandidateLike]] = {
    "kernel": Candidate.of,
    "kernelbench": kernelbench,
    "gpu-mode": gpu_mode,
    "backendbench": backendbench,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flashproof judge",
        description="judge a kernel that nobody trusts, in a process of its own (docs/guide/judge.md)",
        epilog="Exit status: 0 it passes, 1 it fails or is undecided, 2 the request is wrong.",
    )
    parser.add_argument(
        "candidate", help="file.py:function; with --form a file or folder of that benchmark"
    )
    parser.add_argument(
        "--contract", metavar="FILE", help="what the kernel has to compute, as JSON"
    )
    parser.add_argument(
        "--form", choices=_FORMS, default="kernel", help="how the benchmark calls it"
    )
    usual = Budget()
    for name, kind, what in (
        ("seconds", float, "time of the whole"),
        ("call-seconds", float, "time of one call"),
        ("memory", int, "memory, in bytes"),
        ("problems", int, "problems of each property and shape"),
    ):
        default = getattr(usual, name.replace("-", "_"))
        parser.add_argument(
            f"--{name}",
            type=kind,
            default=default,
            metavar="N",
            help=f"{what} (default: {default})",
        )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="draw the problems of a judgement again"
    )
    parser.add_argument(
        "--witness", metavar="FILE", help="judge the saved problem of a judgement alone"
    )
    parser.add_argument(
        "--python", metavar="PROGRAM", help="the interpreter of the candidate's process"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write the judgement as JSON (- for standard output)"
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Judge what the words of a command line name, and print it; the exit status."""
    given = _parser().parse_args(arguments)
    try:
        budget = Budget(
            seconds=given.seconds,
            call_seconds=given.call_seconds,
            memory=given.memory,
            problems=given.problems,
        )
        found = judge(
            _FORMS[given.form](given.candidate),
            given.contract,
            budget=budget,
            seed=given.seed,
            witness=given.witness,
            python=given.python,
        )
    except (ValueError, TypeError, NodeNotFoundError) as error:
        print(f"flashproof: {error}", file=sys.stderr)
        return 2
    document = json.dumps(found.to_json(), indent=1, ensure_ascii=False) + "\n"
    if given.json == "-":
        sys.stdout.write(document)
        return 0 if found else 1
    if given.json is not None:
        Path(given.json).write_text(document, encoding="utf-8")
    print(found)
    return 0 if found else 1
