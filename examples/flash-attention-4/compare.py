"""Compares what FlashAttention-4's compiled kernels give on the emulated machine with `flashproof emulate fa4`, bit for bit, on
random problems of each configuration. Prints a table; the exit status is 1 where bits differ or something did not run."""

import argparse, collections, concurrent.futures, json, os, pathlib, re, struct, subprocess, sys, tempfile, threading, zlib

import chain, configurations
from flashproof import RequestError, safetensors
from flashproof.server import Server

HERE = pathlib.Path(__file__).parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("configuration", nargs="*", help="names, as --list prints them; default all")
    parser.add_argument("--list", action="store_true", help="print the names of the configurations")
    parser.add_argument("--problems", type=int, default=3, help="random problems of each configuration (default 3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--architecture", default="sm_100a", choices=["sm_100a", "sm_103a"])
    parser.add_argument("--threads", type=int, default=2, help="problems that run at a time")
    parser.add_argument("--folder", type=pathlib.Path, help="where problems, PTX and results are kept (default: nowhere)")
    parser.add_argument("--hashes", type=pathlib.Path, help="as of record.py")
    return parser.parse_args()


class Servers(threading.local):
    """A process of flashproof for each thread that gives commands, so that none starts anew."""

    def __init__(self):
        self.server = Server()


servers = Servers()


def flashproof(*words):
    """Carries out a command line of flashproof. RequestError for what cannot be."""
    return chain.command(servers.server, *words)


def differing(left, right):
    """How many elements of two tensors differ in any bit, and how many there are."""
    size = safetensors.ELEMENT_BITS[left.dtype] // 8
    if left.dtype != right.dtype or len(left.data) != len(right.data):
        raise ValueError(f"{left.dtype} {left.shape} and {right.dtype} {right.shape} cannot be compared")
    format = {1: "B", 2: "H", 4: "I"}[size]
    numbers = [struct.unpack(f"<{len(tensor.data) // size}{format}", tensor.data) for tensor in (left, right)]
    return sum(a != b for a, b in zip(*numbers)), len(numbers[0])


def tokens_first(tensor):
    """[1, heads, tokens, dim] of the emulation, as packed outputs lie: [tokens, heads, dim]."""
    _, heads, tokens, dim = tensor.shape
    size = dim * safetensors.ELEMENT_BITS[tensor.dtype] // 8
    rows = [tensor.data[i : i + size] for i in range(0, len(tensor.data), size)]
    data = b"".join(rows[head * tokens + token] for token in range(tokens) for head in range(heads))
    return safetensors.Array(tensor.dtype, (tokens, heads, dim), data)


def prepare(name, of, options, folder):
    """Draws the problems of a configuration; a list of files, and what was drawn for each. Those of a backward have the model's
    own `out` and `lse`, which the kernels read."""
    paths = []
    for i in range(options.problems):
        path = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.{i}.safetensors"
        tensors, metadata, told = configurations.draw(of, zlib.crc32(f"{name} {options.seed} {i}".encode()))
        safetensors.write(path, tensors, metadata)
        if of.backward:
            emulate(path, of, options, path.with_suffix(".forward"), backward=False)
            given, _ = safetensors.read(path.with_suffix(".forward"))
            out, lse = given["out"], given["lse"]
            if of.sequences:
                out, lse = tokens_first(out), safetensors.Array(lse.dtype, lse.shape[1:], lse.data)
            safetensors.write(path, {**tensors, "out": out, "lse": lse}, metadata)
        paths.append((path, told))
    return paths


def settings_of(of, options, backward):
    """The model's settings as words of the command line."""
    # what a kernel is tuned to is tuned on sm_100a alone
    settings = {"architecture": options.architecture.removesuffix("a"), **(of.settings if options.architecture == "sm_100a" else {})}
    if of.splits > 1:
        settings["splits"] = of.splits
    if of.deterministic and backward:
        settings["deterministic"] = "true"
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def emulate(path, of, options, save, backward):
    words = settings_of(of, options, backward)
    flashproof("emulate", "fa4", path, "--save", save, "--quiet", *words, *(["--backward"] if backward else []))


def record(chosen, problems, options, folder):
    """Compiles and records, in one process for each choice that holds for a whole process."""
    groups = collections.defaultdict(list)
    for name, of in chosen.items():
        groups[of.ctas, of.splits, of.backward, of.deterministic].extend(path for path, _ in problems[name])
    for (ctas, splits, backward, deterministic), paths in groups.items():
        words = ["--to", folder / "recorded", "--architecture", options.architecture, "--ctas", ctas, "--splits", splits]
        words += (["--backward"] if backward else []) + (["--deterministic"] if deterministic else [])
        words += ["--hashes", options.hashes] if options.hashes else []
        command = [sys.executable, HERE / "record.py", *paths, *words]
        subprocess.run(list(map(str, command)), env={**os.environ, "PYTHONWARNINGS": "ignore"}, stdout=subprocess.DEVNULL)


def compiled(launches, of):
    """Runs launches in order, each reading what those before it wrote. Where adds have no order, thread blocks start in one that
    is drawn."""
    words = ["--contract"] if of.contract else []
    words += ["--starts", f"random:{zlib.crc32(launches[0].parent.name.encode())}"] if of.any_order else []
    return chain.run(launches, servers.server, *words)


def match_orders(path, of, options, written):
    """What of gradients no order of the model's additions is known to give, as `judge` counts it, and a third number: how many
    elements another order than the ascending one gives."""
    given, report = path.with_suffix(".gradients"), path.with_suffix(".json")
    safetensors.write(given, {name: written[name] for name in ["dq", "dk", "dv"]})
    words = [word for name in ["dq", "dk", "dv"] for word in (f"--{name}", f"{given}:{name}")]
    flashproof("audit", path, *words, "--as", "fa4", *settings_of(of, options, False), "--json", report, "--quiet")
    (match,) = json.loads(report.read_text())["gradients"]["models"]
    if match["reason"] is not None:
        raise RequestError(match["reason"])
    return {one["name"]: (one["undecided"] + one["noOrder"], one["elements"], one["someOrder"]) for one in match["gradients"]}


def judge(path, of, options, folder):
    """What differs of a problem: (differing, all, in another order) of each output; findings; or a text that says why there is
    nothing to compare."""
    launches = sorted((folder / "recorded" / path.stem).glob("*launch.json"))
    if not launches:
        return "not recorded"
    try:
        run = compiled(launches, of)
        if of.any_order:
            return match_orders(path, of, options, run.written), run.findings
        emulate(path, of, options, path.with_suffix(".emulated"), of.backward)
    except (RequestError, RuntimeError) as error:
        return str(error).strip().split("\n")[0][:200]
    expected, _ = safetensors.read(path.with_suffix(".emulated"))
    names = ["dq", "dk", "dv"] if of.backward else ["out", "lse"]
    if of.sequences:
        expected |= {name: tokens_first(expected[name]) for name in names if name != "lse"}
    return {name: (*differing(run.written[name], expected[name]), 0) for name in names}, run.findings


def main():
    options = arguments()
    table = configurations.table()
    if options.list:
        return print("\n".join(table))
    unknown = [name for name in options.configuration if name not in table]
    if unknown:
        sys.exit(f"no configuration {unknown[0]}; --list prints the names")
    chosen = {name: table[name] for name in options.configuration or table}
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        problems = {name: prepare(name, of, options, folder) for name, of in chosen.items()}
        record(chosen, problems, options, folder)
        sys.exit(report(chosen, problems, options, folder))


def counted(counts):
    """The counts of each output in words."""
    another = lambda number: f" ({number:,} in another order)" if number else ""
    return ", ".join(f"{output} {wrong:,} of {all:,}{another(other)}" for output, (wrong, all, other) in counts.items())


def report(chosen, problems, options, folder):
    """Prints a line a configuration, and one for each problem whose bits differ; the exit status."""
    failed = False
    with concurrent.futures.ThreadPoolExecutor(options.threads) as pool:
        tasks = {
            name: [pool.submit(judge, path, of, options, folder) for path, _ in problems[name]] for name, of in chosen.items()
        }
        for name in chosen:
            sums, findings, lines = collections.defaultdict(lambda: [0, 0, 0]), 0, []
            for (path, told), task in zip(problems[name], tasks[name]):
                result = task.result()
                if isinstance(result, str):
                    lines.append(f"  {told}: {result}")
                    continue
                counts, found = result
                findings += found
                for output, numbers in counts.items():
                    sums[output] = [a + b for a, b in zip(sums[output], numbers)]
                if any(wrong for wrong, *_ in counts.values()):
                    lines.append(f"  {told}: {counted(counts)}")
            compared = len(problems[name]) - sum(isinstance(task.result(), str) for task in tasks[name])
            print(f"{name}: {compared} problems, differing {counted(sums) or 'unknown'}; {findings} findings", *lines, sep="\n", flush=True)
            failed |= bool(lines)
    return 1 if failed else 0


if __name__ == "__main__":
    main()
