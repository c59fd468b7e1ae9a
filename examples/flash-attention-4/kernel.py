"""FlashAttention-4's forward as a live kernel of flashproof (`check --exec`, `audit --exec`), without a GPU: for each problem its
interface chooses a kernel, compiles it and launches it, and the launches run on the emulated machine."""

import argparse, json, os, pathlib, sys, tempfile

import chain, compiler, record
from flashproof import safetensors
from flashproof.server import Server

# What a request says beside the files, by the names of the problem's metadata.
NOTES = ["scale", "causal", "window", "softcap", "prefix", "lse_sink", "dropout_p", "block_q", "block_k", "kv_layout", "layout"]


def noted(value):
    """A value of a request as the metadata of a file has it."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value)


class Kernel:
    """Answers requests. Kernels are compiled once for all problems that FlashAttention-4 has them for."""

    def __init__(self, options):
        self.interface, self.recorder = compiler.load(options.architecture, options.ctas, options.multiprocessors)
        from problem import Problem  # it loads PyTorch, which is to find the environment set

        self.problem, self.splits, self.server = Problem, options.splits, Server()

    def answer(self, request):
        try:
            with tempfile.TemporaryDirectory(prefix="flash-attention-4-") as folder:
                outputs = self.run(request, pathlib.Path(folder))
        except (AssertionError, NotImplementedError, ValueError) as error:  # as FlashAttention-4 refuses arguments
            return {"id": request["id"], "ok": False, "unsupported": True, "error": f"{type(error).__name__}: {error}"}
        except Exception as error:
            return {"id": request["id"], "ok": False, "error": f"{type(error).__name__}: {error}"}
        safetensors.write(request["output"], outputs)
        return {"id": request["id"], "ok": True}

    def run(self, request, folder):
        """The outputs of a problem. RuntimeError where the machine has a finding."""
        tensors, _ = safetensors.read(request["problem"])
        problem = self.problem(tensors, {name: noted(request[name]) for name in NOTES if name in request})
        self.recorder.start()
        outputs = problem.forward(self.interface, self.splits)
        if not self.recorder.launches:
            raise NotImplementedError("FlashAttention-4 launches no kernel for it")
        launches = [path for path, *_ in record.write(folder, problem, outputs, self.recorder)]
        made = chain.run(launches, self.server)
        if made.faults:
            raise RuntimeError(f"the machine found: {findings_of(made.faults[0])}")
        return {name: made.written[name] for name in outputs}


def findings_of(printed):
    """The findings in what `flashproof run` has printed, in one line."""
    lines = printed.split("\n")
    first = next((i for i, line in enumerate(lines) if "finding" in line), 0)
    return " ".join(line.strip() for line in lines[first : first + 12])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    record.add_choices(parser)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what packages print is no answer
    kernel = Kernel(options)
    for line in sys.stdin:
        print(json.dumps(kernel.answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
