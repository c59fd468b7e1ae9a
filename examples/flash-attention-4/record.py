"""Records what FlashAttention-4 launches for a problem: PTX and launch files for `flashproof run`. Needs no GPU."""

import argparse, dataclasses, hashlib, json, pathlib, sys

import compiler, launch_file
from flashproof import Array, launches, safetensors

TORCH = {"BF16": "bfloat16", "F16": "float16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F32": "float32", "I32": "int32", "U8": "uint8"}
NAMES = {name: dtype for dtype, name in TORCH.items()}


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of multiprocessors: give 1 or more")
    return number


def add_choices(parser):
    """Adds the options that hold for all problems."""
    parser.add_argument("--architecture", default="sm_100a", choices=compiler.ARCHITECTURES)
    parser.add_argument("--ctas", type=int, default=2, choices=[1, 2], help="1: no pairs of thread blocks")
    parser.add_argument("--multiprocessors", type=positive, help="as of a GPU with so many: fewer give each CTA several tiles")
    parser.add_argument("--splits", type=int, default=1, help="splits of the keys")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", nargs="+", type=pathlib.Path, help="problem files; each gets a folder of its own name")
    parser.add_argument("--to", required=True, type=pathlib.Path, help="folder for what is written")
    add_choices(parser)
    parser.add_argument("--backward", action="store_true", help="gradients, for dout, out and lse of the problem file")
    parser.add_argument("--deterministic", action="store_true", help="gradients whose additions have an order")
    parser.add_argument("--hashes", type=pathlib.Path, help="JSON file that gets the SHA-256 of each PTX, beside those in it")
    return parser.parse_args()


def main():
    options = arguments()
    interface, recorder = compiler.load(options.architecture, options.ctas, options.multiprocessors)
    from problem import Problem  # it loads PyTorch, which is to find the environment set

    hashes, refused = {}, []
    for path in options.problem:
        recorder.start()
        try:
            problem = Problem(*safetensors.read(path))
            if options.backward:
                outputs = problem.backward(interface, options.deterministic)
            else:
                outputs = problem.forward(interface, options.splits)
        except Exception as error:  # whatever FlashAttention-4 or the compiler says of it; the other problems go on
            refused.append(path)
            print(f"{path}: not recorded: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        # One launch does all; of several none solves the problem alone.
        contract = problem.contract(outputs) if len(recorder.launches) == 1 else None
        written = write(options.to / path.stem, problem, outputs, recorder, contract)
        for launch, size, hash in written:
            print(f"{launch}: {size} bytes of PTX, SHA-256 {hash}", flush=True)
        label = [path.stem, options.architecture]
        label += ["one CTA"] if options.ctas == 1 else []
        label += [f"{options.multiprocessors} multiprocessors"] if options.multiprocessors else []
        label += [f"{options.splits} splits"] if options.splits > 1 else []
        label += ["backward"] if options.backward else []
        label += ["deterministic"] if options.deterministic else []
        hashes[", ".join(label)] = [hash for *_, hash in written]
    if options.hashes:
        earlier = json.loads(options.hashes.read_text()) if options.hashes.exists() else {}
        text = json.dumps(dict(sorted({**earlier, **hashes}.items())), indent=2)
        options.hashes.write_text(text + "\n")
    return 1 if refused else 0


def write(folder, problem, outputs, recorder, contract=None):
    """Writes the files of a problem's launches, in order; later ones read what earlier ones wrote. Returns the
    path, the size of its PTX and its SHA-256 of each."""
    memory = recorder.memory
    names = {memory.place(memory.address(tensor))[0]: name for name, tensor in {**problem.given, **outputs}.items()}
    tensors = dict(problem.stored)
    folder.mkdir(parents=True, exist_ok=True)

    def place(address):
        found = memory.place(address)
        if found is None:
            return None
        number, offset = found
        storage = memory.held[number]
        name = names.setdefault(number, f"buffer{number}")
        if name not in tensors:
            dtype = NAMES[str(storage.dtype).removeprefix("torch.")]
            shape = problem.shapes.get(name, (storage.untyped_storage().nbytes() // storage.element_size(),))
            tensors[name] = Array.filled(dtype, shape, 0 if problem.is_zero(storage) else 0xFF)
        if name not in problem.stored and name not in written:
            written.append(name)
        return name, offset

    made = []
    for i, launch in enumerate(recorder.launches):
        written = []  # what it may write, or read of an earlier launch
        stem = f"{i + 1}-{len(recorder.launches)}-" if len(recorder.launches) > 1 else ""
        told = dataclasses.replace(launch_file.launch_file(launch, place, written), contract=contract)
        path = launches.write_launch(folder, launch.ptx, told, stem)
        data = launch.ptx.encode()
        made.append((path, len(data), hashlib.sha256(data).hexdigest()))
    launches.write_tensors(folder, tensors)
    return made


if __name__ == "__main__":
    sys.exit(main())
