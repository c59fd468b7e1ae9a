"""Runs launches one after the other: each gets what those before it wrote."""

import pathlib, re, sys
from dataclasses import dataclass

from flashproof import safetensors
from flashproof.server import Answer, Server


@dataclass(frozen=True)
class Run:
    """What launches have written, by name; how many findings the machine has; what was printed of each."""

    written: dict
    findings: int
    answers: list

    @property
    def faults(self):
        """What was printed of launches that failed."""
        return [answer.stdout for answer in self.answers if answer.status]


def run(launches, server: Server, *options) -> Run:
    """Runs launch files of a folder, in order. RequestError for what cannot be run."""
    folder = launches[0].parent
    tensors, _ = safetensors.read(folder / "tensors.safetensors")
    written, findings, answers = {}, 0, []
    for i, launch in enumerate(launches):
        before, after = (folder / f"{i}.{kind}.safetensors" for kind in ("before", "after"))
        safetensors.write(before, tensors)
        answers.append(command(server, "run", launch, "--tensors", before, "--save", after, *options))
        found = re.search(r"^(\d[\d,]*) findings?\b", answers[-1].stdout, re.M)
        findings += int(found[1].replace(",", ""))
        results, _ = safetensors.read(after)
        tensors.update(results)
        written.update(results)
    return Run(written, findings, answers)


def command(server: Server, *words) -> Answer:
    """Carries out a command line of flashproof."""
    return server.run([str(word) for word in words])


def main(folder, save, *options):
    """Saves every tensor that a launch may have written; returns 1 where a run failed, else 0."""
    made = run(sorted(folder.glob("*launch.json")), Server(), *options)
    for answer in made.answers:
        print(answer.stdout, end="", flush=True)
    safetensors.write(save, made.written)
    return 1 if made.faults else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("python3 chain.py FOLDER FILE [option of flashproof run]...")
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], *sys.argv[3:]))
