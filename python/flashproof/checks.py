"""The property suite on a Python callable: `check`, `assert_kernel`, `laws`."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .arguments import option_words, read_report
from .arrays import Framework
from .dump import Premises, premise_words, temporary_folder
from .kernel_host import RESULTS, Contract, Host, Kernel, KernelHost, promised_arguments
from .replays import check_document_in_python, check_in_python, replay_line, spoken
from .report import Told
from .request import session
from .server import Answer, RequestError, Server, shared_server
from .wording import arguments_of, in_python, misfit, name_of, near

#: What a kernel promises, by the names of docs/reference/properties.md: `formats`, `dims`, `causal`, `gradients`, `laws`, ….
Promises = Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class CheckReport(Told):
    """What a check found. True where every property holds."""

    passed: bool
    sentence: str
    #: The report as the command line prints it: what is violated, by the smallest problem that shows it, and how to try that again.
    text: str
    #: The report of `--json`, whose kernel is one of this process, and whose `replay` is a line of Python.
    json: Mapping[str, Any]

    def result(self, law: str) -> str:
        """What came of a property: `holds`, `violated`, `untried`, …."""
        return next(str(one["result"]) for one in self.json["properties"] if one["name"] == law)


@cache
def laws(contract: Contract = "attention") -> tuple[str, ...]:
    """The names of all properties of a contract."""
    words = ["check", *contract_words(contract), "--list", "--json", "-"]
    listed = json.loads(shared_server().run(words).stdout)
    return tuple(one["name"] for one in listed["properties"])


def _serve(listener: socket.socket, word: str, host: Host, asking: threading.Thread) -> None:
    """Answer the relays, one after the other, for as long as the check runs; the kernel runs in this thread."""
    listener.settimeout(0.05)
    while asking.is_alive():
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        # The relay ends with the check: then there is nothing more to read.
        connection.settimeout(None)
        with connection, connection.makefile("rw", encoding="utf-8") as lines:
            if lines.readline().strip() != word:
                continue
            for line in lines:
                lines.write(json.dumps(host.answer(json.loads(line))) + "\n")
                lines.flush()


def contract_words(contract: Contract) -> list[str]:
    """A contract as words of `flashproof check`. ValueError for another word."""
    if contract not in RESULTS:
        known = ", ".join(RESULTS)
        raise ValueError(f"contract is {contract!r}{near(contract, RESULTS)}; give one of {known}")
    return [] if contract == "attention" else ["--contract", contract]


def _command(
    premises: Premises | None,
    numbers: Mapping[str, object],
    lists: Mapping[str, Sequence[str] | None],
) -> list[str]:
    """Settings as words of `flashproof check`; those that are None are left out."""
    words = [] if premises is None else premise_words(premises)
    for option, value in numbers.items():
        if value is not None:
            words += [option, str(value)]
    for option, names in lists.items():
        if names is not None:
            words += [option, ",".join(names)]
    return words


def carry_out(
    host: Host,
    folder: str,
    promises: Promises | None,
    words: Sequence[str],
    server: Server | None,
    command: Sequence[str] = ("check",),
) -> Answer:
    """
    Run a command on a kernel of this process: `flashproof check`, or another that takes --exec.

    TypeError where the kernel cannot be called with what a problem has, if its host stops at that.
    """
    word = secrets.token_hex(16)
    answers: list[Answer | BaseException] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay = [
            sys.executable,
            str(Path(__file__).with_name("relay.py")),
            str(listener.getsockname()[1]),
            word,
        ]
        line = [*command, "--exec", shlex.join(relay)]
        if promises is not None:
            named = os.path.join(folder, "promises.json")
            Path(named).write_text(json.dumps(promises))
            line += ["--promises", named]
        # Last, so that an option without its value takes none of these words for it.
        line += words

        def ask() -> None:
            try:
                answers.append((server or shared_server()).run(line))
            except BaseException as error:
                answers.append(error)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        _serve(listener, word, host, asking)
        asking.join()
    (answer,) = answers
    for reason in getattr(host, "misfits", ()):
        raise TypeError(reason)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _host_of(
    kernel: Kernel,
    backward: Callable[..., Any] | None,
    framework: Framework,
    contract: Contract,
    promises: Promises | None,
) -> KernelHost:
    """What calls a kernel with what it promises to take."""
    promised = promises if isinstance(promises, Mapping) else {}
    implied: dict[str, Any] = {"causal": True} if promised.get("causal") == "only" else {}
    families = list(promised.get("families") or ())
    if len(families) == 1:
        implied["family"] = families[0]
    settings: dict[str, Any] = {"stops_at_misfit": True, "implied": implied}
    return KernelHost(kernel, backward, framework, contract, **settings)


def _carry_out_in_python(
    arguments: set[str],
    host: KernelHost,
    promises: Promises | None,
    words: Sequence[str],
    server: Server | None,
) -> Answer:
    """The same, whose refusals name `arguments`, and no file that its caller never saw."""
    with temporary_folder() as folder:
        try:
            return carry_out(host, folder, promises, words, server)
        except RequestError as error:
            said = str(error).replace(f"{os.path.join(folder, 'promises.json')}: ", "promises: ")
            said = said.replace("; see flashproof check --help", "")
            raise RequestError(in_python(said, arguments)) from None


def check(
    kernel: Kernel,
    promises: Promises | None = None,
    *,
    contract: Contract = "attention",
    framework: Framework = "numpy",
    backward: Callable[..., Any] | None = None,
    laws: Sequence[str] | None = None,
    regimes: Sequence[str] | None = None,
    premises: Premises | None = None,
    runs: int | None = None,
    seed: int | None = None,
    seconds: float | None = None,
    timeout: float | None = None,
    strict_premises: bool = False,
    options: Sequence[str] | None = None,
    server: Server | None = None,
) -> CheckReport:
    """
    Try the properties of attention or of a recurrence on a kernel, on random problems that break kernels, and simplify what
    violates them.

    The kernel is called in this process and thread as `kernel(q, k, v, scale=…, causal=…, window=…, softcap=…)`, with arrays of
    `framework`, [batch, heads, seqlen, dim]; with the tensors of features that it promises besides (`mask`, `bias`,
    `alibi_slopes`, `sink`, …). It may lack an argument that it does not promise to take, `softcap` for one. It returns the
    output, or output and LSE, and raises `Declined` or NotImplementedError for what it does not take. With
    `contract="recurrent"` it is called as `kernel(q, k, v, family=…, scale=…, normalisation=…)`, with arrays of [batch, tokens,
    heads, dim], with `g`, `beta`, `initial_state` and `cu_seqlens` where the problem has them, and returns the output, or
    output and final state. `promises` are those of a file of promises (docs/reference/properties.md). Where they have
    `gradients`, these come from autograd (PyTorch), from `jax.vjp`, or from `backward(q, k, v, dout, scale=…, …)`, which
    returns dQ, dK and dV, or a mapping by name.
    With `strict_premises` no failure is told other premises that it would pass by.
    `options` are further words of `flashproof check`. RequestError where no problem could be tried; TypeError, after the first
    problem, where the kernel cannot be called with its arguments.
    """
    numbers = {"--runs": runs, "--seed": seed, "--seconds": seconds, "--timeout": timeout}
    words = [
        *contract_words(contract),
        *_command(premises, numbers, {"--property": laws, "--regime": regimes}),
    ]
    if promises is None or isinstance(promises, Mapping):
        reason = misfit(kernel, promised_arguments(contract, promises or {}), complete=False)
        if reason is not None:
            raise TypeError(reason)
    if strict_premises:
        words.append("--strict-premises")
    with temporary_folder() as folder:
        document = os.path.join(folder, "check.json")
        further = option_words(options, has_kernel=True)
        words += ["--json", document, "--save-dir", str(session.failures), *further]
        host = _host_of(kernel, backward, framework, contract, promises)
        answer = _carry_out_in_python(arguments_of(check, further), host, promises, words, server)
        report = read_report(document, "check", further)
    verdict = report["verdict"]
    again = {
        "contract": (contract, "attention"),
        "framework": (framework, "numpy"),
        "backward": (backward, None),
        "premises": (premises, None),
    }
    line = replay_line(kernel, promises, again)
    text = check_in_python(answer.stdout, report, name_of(kernel), line)
    found = check_document_in_python(report, name_of(kernel), line)
    return CheckReport(bool(verdict["pass"]), spoken(verdict["sentence"]), text, found)


def assert_kernel(kernel: Kernel, promises: Promises | None = None, **settings: Any) -> CheckReport:
    """Assert that every property holds: `check`, with an AssertionError that shows what is violated."""
    __tracebackhide__ = True
    report = check(kernel, promises, **settings)
    if not report.passed:
        raise AssertionError(report.text.rstrip())
    return report


@dataclass(frozen=True, repr=False)
class Replay(Told):
    """What came of a problem that was saved. True where the kernel is right now."""

    passed: bool
    text: str


def replay(
    kernel: Kernel,
    path: str | os.PathLike[str],
    promises: Promises | None = None,
    *,
    contract: Contract = "attention",
    framework: Framework = "numpy",
    backward: Callable[..., Any] | None = None,
    premises: Premises | None = None,
) -> Replay:
    """Try a problem again that `check` has saved, with the kernel and the arguments that were given there."""
    words = [
        *contract_words(contract),
        *_command(premises, {}, {}),
        *("--replay", os.fspath(path)),
    ]
    host = _host_of(kernel, backward, framework, contract, promises)
    answer = _carry_out_in_python(arguments_of(replay), host, promises, words, None)
    return Replay(answer.status == 0, spoken(answer.stdout))
