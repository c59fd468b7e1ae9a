"""Compares two of FlashAttention-4's compiled kernels with the model and certifies them, in ten minutes at most: what CI runs.
Installs the pinned packages into a folder of its own, and says so where it leaves the comparison out."""

import os, pathlib, platform, shutil, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).parent
CONFIGURATIONS = ["d64", "d128 causal"]
SECONDS = 600
FREE_BYTES = 12 * 2**30  # packages, and what pip unpacks on the way


def left_out(why):
    print(f"compiled kernels were not compared: {why}", flush=True)
    sys.exit(0)


def run(command, until):
    """Runs a command up to a time: its exit status; None where the time was up."""
    try:
        return subprocess.run(list(map(str, command)), timeout=max(1, until - time.monotonic())).returncode
    except subprocess.TimeoutExpired:
        return None


def main():
    until = time.monotonic() + SECONDS
    if os.environ.get("FLASH_ATTENTION_4") != "compare":
        left_out("FLASH_ATTENTION_4=compare asks for it (6 GB of packages, up to ten minutes)")
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        left_out(f"the packages are for Linux on x86-64, and this is {sys.platform} on {platform.machine()}")
    if sys.version_info < (3, 10) or shutil.which("cc") is None:
        left_out("it needs Python 3.10 and a C compiler")
    with tempfile.TemporaryDirectory(prefix="flash-attention-4-") as folder:
        if shutil.disk_usage(folder).free < FREE_BYTES:
            left_out(f"less than {FREE_BYTES >> 30} GiB are free in {folder}")
        python = pathlib.Path(folder) / "venv" / "bin" / "python"
        if run([sys.executable, "-m", "venv", python.parent.parent], until) != 0:
            left_out("no virtual environment could be made")
        install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--retries", "1", "--timeout", "15"]
        status = run([*install, "-r", HERE / "requirements.txt"], until)
        if status != 0:
            left_out("the packages could not be installed" + (" in time" if status is None else ""))
        work = pathlib.Path(folder) / "work"
        status = run([python, HERE / "compare.py", *CONFIGURATIONS, "--problems", "1", "--folder", work], until)
        launches = sorted(work.glob("recorded/*/launch.json"))
        if status == 0 and len(launches) != len(CONFIGURATIONS):
            sys.exit(f"{len(launches)} launches were recorded to certify, and not {len(CONFIGURATIONS)}")
        for launch in launches:
            if status == 0:
                status = run(["npx", "flashproof", "certify", launch], until)
        if status is None:
            left_out(f"{SECONDS // 60} minutes were up")
        sys.exit(status)


if __name__ == "__main__":
    main()
