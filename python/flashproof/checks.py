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
from .arrays import Framework, from_array, to_array
from .dump import Premises, premise_words, temporary_folder
from .request import session
from .safetensors import Array, read, write
from .server import Answer, Server, shared_server

#: Gradients that a kernel may be asked for, by the tensor that each is of.
GRADIENTS = {"dq": "q", "dk": "k", "dv": "v", "dbias": "bias", "dsink": "sink"}

#: What a kernel promises, by the names of docs/reference/properties.md: `formats`, `dims`, `causal`, `gradients`, `laws`, ….
Promises = Mapping[str, Any]

#: A kernel: `kernel(q, k, v, *, scale, causal, window, softcap, **features)` gives the output, or the output and the LSE.
Kernel = Callable[..., Any]


class Declined(Exception):
    """A kernel raises it for a problem that it does not take; NotImplementedError does as well."""


@dataclass(frozen=True)
class CheckReport:
    """What a check found. True where every property holds."""

    passed: bool
    sentence: str
    #: The report as the command line prints it: what is violated, by the smallest problem that shows it, and how to try that again.
    text: str
    #: The report of `--json`.
    json: Mapping[str, Any]

    def __bool__(self) -> bool:
        return self.passed

    def result(self, law: str) -> str:
        """What came of a property: `holds`, `violated`, `untried`, …."""
        return next(str(one["result"]) for one in self.json["properties"] if one["name"] == law)


@cache
def laws() -> tuple[str, ...]:
    """The names of all properties."""
    listed = json.loads(shared_server().run(["check", "--list", "--json", "-"]).stdout)
    return tuple(one["name"] for one in listed["properties"])


@dataclass(frozen=True)
class KernelHost:
    """Runs a kernel on problems that come as files."""

    kernel: Kernel
    backward: Callable[..., Any] | None
    framework: Framework

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry a request of the process protocol out; the answer to it. Never raises what the kernel raises."""
        try:
            write(request["output"], self.run(request))
        except (Declined, NotImplementedError) as error:
            return {
                "id": request["id"],
                "ok": False,
                "unsupported": True,
                "error": str(error) or "it declines",
            }
        except Exception as error:
            return {"id": request["id"], "ok": False, "error": f"{type(error).__name__}: {error}"}
        return {"id": request["id"], "ok": True}

    def run(self, request: Mapping[str, Any]) -> dict[str, Array]:
        """The tensors that a request wants."""
        stored, _ = read(request["problem"])
        tensors = {
            name: from_array(_ranked(name, array, stored), self.framework)
            for name, array in stored.items()
        }
        beside = {
            key: value
            for key, value in request.items()
            if key not in ("id", "problem", "output", "wants")
        }
        wanted = [name for name in request.get("wants", ()) if name in GRADIENTS]
        dout = tensors.pop("dout", None)
        if not wanted:
            return _named(self.kernel(**tensors, **beside))
        if self.backward is not None:
            found = _named(self.kernel(**tensors, **beside))
            grads = self.backward(dout=dout, **tensors, **beside)
            return {
                **found,
                **{name: to_array(one, name) for name, one in zip(("dq", "dk", "dv"), grads)},
            }
        if self.framework == "torch":
            return self._by_autograd(tensors, beside, dout, wanted)
        if self.framework == "jax":
            return self._by_vjp(tensors, beside, dout, wanted)
        raise NotImplementedError(
            "gradients of a NumPy kernel: give backward=, which returns dq, dk and dv"
        )

    def _by_autograd(
        self, tensors: dict[str, Any], beside: dict[str, Any], dout: Any, wanted: Sequence[str]
    ) -> dict[str, Array]:
        import torch

        leaves = {
            name: tensors[name].requires_grad_()
            for name in (GRADIENTS[one] for one in wanted)
            if name in tensors
        }
        made = self.kernel(**tensors, **beside)
        out = made[0] if isinstance(made, (tuple, list)) else made
        grads = torch.autograd.grad(
            out, list(leaves.values()), dout.to(out.dtype).reshape(out.shape)
        )
        found = _named(made)
        for name, grad in zip(leaves, grads):
            found[f"d{name}"] = to_array(grad, f"d{name}")
        return found

    def _by_vjp(
        self, tensors: dict[str, Any], beside: dict[str, Any], dout: Any, wanted: Sequence[str]
    ) -> dict[str, Array]:
        import jax

        names = [GRADIENTS[one] for one in wanted if GRADIENTS[one] in tensors]

        def output(*leaves: Any) -> tuple[Any, Any]:
            made = self.kernel(**{**tensors, **dict(zip(names, leaves))}, **beside)
            return (made[0] if isinstance(made, (tuple, list)) else made), made

        out, pull, made = jax.vjp(output, *(tensors[name] for name in names), has_aux=True)
        found = _named(made)
        for name, grad in zip(names, pull(dout.astype(out.dtype).reshape(out.shape))):
            found[f"d{name}"] = to_array(grad, f"d{name}")
        return found


def _ranked(name: str, array: Array, stored: Mapping[str, Array]) -> Array:
    """Q, K, V and dO with a batch, which a file may leave out; packed sequences have none: [total, heads, dim]."""
    side = "k" if name in ("k", "v") else "q"
    is_packed = f"cu_seqlens_{side}" in stored or "cu_seqlens" in stored
    if name in ("q", "k", "v", "dout") and len(array.shape) == 3 and not is_packed:
        return Array(array.dtype, (1, *array.shape), array.data)
    return array


def _named(made: Any) -> dict[str, Array]:
    """What a kernel returns: the output, (output, LSE), or a mapping by name; what is None is left out."""
    if isinstance(made, Mapping):
        named = dict(made)
    elif isinstance(made, (tuple, list)):
        named = dict(zip(("out", "lse"), made))
    else:
        named = {"out": made}
    return {name: to_array(value, name) for name, value in named.items() if value is not None}


def _serve(listener: socket.socket, word: str, host: KernelHost, asking: threading.Thread) -> None:
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
    host: KernelHost,
    folder: str,
    promises: Promises | None,
    words: Sequence[str],
    server: Server | None,
    command: Sequence[str] = ("check",),
) -> Answer:
    """Run a command on a kernel of this process: `flashproof check`, or another that takes --exec."""
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
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _with_python_replays(text: str, document: Mapping[str, Any]) -> str:
    """The text with how failures are tried again from Python: the command that it shows needs this process."""
    saved = [
        words[words.index("--replay") + 1]
        for violation in (one.get("violation") for one in document["properties"])
        if violation is not None
        for words in [violation.get("replay") or []]
        if "--replay" in words
    ]
    return "".join(
        [text.rstrip(), *(f"\n\nIn Python: flashproof.replay(kernel, {path!r})" for path in saved)]
    )


def check(
    kernel: Kernel,
    promises: Promises | None = None,
    *,
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
    Try the properties of attention on a kernel, on random problems that break kernels, and simplify what violates them.

    The kernel is called in this process and thread as `kernel(q, k, v, scale=…, causal=…, window=…, softcap=…)`, with arrays
    of `framework`, [batch, heads, seqlen, dim]; with the tensors of features that it promises besides (`mask`, `bias`,
    `alibi_slopes`, `sink`, …). It returns the output, or output and LSE, and raises `Declined` or NotImplementedError for what
    it does not take. `promises` are those of a file of promises (docs/reference/properties.md). Where they have `gradients`, these come
    from autograd (PyTorch), from `jax.vjp`, or from `backward(q, k, v, dout, scale=…, …)`, which returns dQ, dK and dV.
    With `strict_premises` no failure is told other premises that it would pass by.
    `options` are further words of `flashproof check`. RequestError where no problem could be tried.
    """
    numbers = {"--runs": runs, "--seed": seed, "--seconds": seconds, "--timeout": timeout}
    words = _command(premises, numbers, {"--property": laws, "--regime": regimes})
    if strict_premises:
        words.append("--strict-premises")
    with temporary_folder() as folder:
        document = os.path.join(folder, "check.json")
        further = option_words(options, has_kernel=True)
        words += ["--json", document, "--save-dir", str(session.failures), *further]
        answer = carry_out(KernelHost(kernel, backward, framework), folder, promises, words, server)
        report = read_report(document, "check", further)
    verdict = report["verdict"]
    return CheckReport(
        bool(verdict["pass"]),
        verdict["sentence"],
        _with_python_replays(answer.stdout, report),
        report,
    )


def assert_kernel(kernel: Kernel, promises: Promises | None = None, **settings: Any) -> CheckReport:
    """Assert that every property holds: `check`, with an AssertionError that shows what is violated."""
    __tracebackhide__ = True
    report = check(kernel, promises, **settings)
    if not report.passed:
        raise AssertionError(report.text.rstrip())
    return report


@dataclass(frozen=True)
class Replay:
    """What came of a problem that was saved. True where the kernel is right now."""

    passed: bool
    text: str

    def __bool__(self) -> bool:
        return self.passed


def replay(
    kernel: Kernel,
    path: str | os.PathLike[str],
    promises: Promises | None = None,
    *,
    framework: Framework = "numpy",
    backward: Callable[..., Any] | None = None,
    premises: Premises | None = None,
) -> Replay:
    """Try a problem again that `check` has saved, with the kernel and the arguments that were given there."""
    words = [*_command(premises, {}, {}), "--replay", os.fspath(path)]
    with temporary_folder() as folder:
        answer = carry_out(KernelHost(kernel, backward, framework), folder, promises, words, None)
    return Replay(answer.status == 0, answer.stdout)
