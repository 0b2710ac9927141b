"""Files larger than the memory they may take: fits a CSV and a Parquet file of several gigabytes under a small limit.

Needs only the built command and the standard library. Makes its files with `covary sample`, in a temporary folder that it
removes. Prints, for each file, the time of the fit beside that of a plain `wc -l` (or of reading the bytes), the peak of
resident memory, and how far σ² lies from the truth of the model that the rows were drawn from.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import tempfile
import time

FEATURES, LATENT, NOISE = 100, 5, 0.25


def seed_rows(path, rows=4000):
    """A small file from a known model, so that `covary fit` gives a model to sample from."""
    rng = random.Random(0)
    w = [[rng.gauss(0, 1) for _ in range(LATENT)] for _ in range(FEATURES)]
    with open(path, "w") as f:
        f.write(",".join(f"f{j}" for j in range(FEATURES)) + "\n")
        for _ in range(rows):
            z = [rng.gauss(0, 1) for _ in range(LATENT)]
            row = (sum(a * b for a, b in zip(wj, z)) + rng.gauss(0, NOISE**0.5) for wj in w)
            f.write(",".join(f"{x:.17g}" for x in row) + "\n")


def run(*command):
    """Seconds, peak resident MiB and standard output of a command."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - started, usage.ru_maxrss / 1024, out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", default="covary")
    parser.add_argument("--gigabytes", type=float, default=5)
    parser.add_argument("--memory", default="512M")
    args = parser.parse_args()
    covary = args.command
    with tempfile.TemporaryDirectory(prefix="covary-large-") as folder:
        folder = pathlib.Path(folder)
        seed, model = str(folder / "seed.csv"), str(folder / "seed.covary")
        seed_rows(seed)
        run(covary, "fit", seed, "-q", str(LATENT), "-o", model, "--quiet")
        truth = json.loads(run(covary, "inspect", model, "--json")[2])["noise_variance"]
        bytes_per_row = {".csv": FEATURES * 19.4, ".parquet": FEATURES * 8.0}
        for ending, size in bytes_per_row.items():
            rows = int(args.gigabytes * 1e9 / size)
            data = str(folder / f"large{ending}")
            run(covary, "sample", model, "-n", str(rows), "-o", data, "--quiet")
            counted, _, _ = run("wc", "-l", data)
            seconds, peak, out = run(
                covary, "fit", data, "-q", str(LATENT), "--memory", args.memory, "--json", "-o", str(folder / "m.covary")
            )
            fit = json.loads(out)
            gigabytes = os.path.getsize(data) / 1e9
            print(
                f"{ending[1:]:8} {gigabytes:5.2f} GB, {rows} rows: fit {seconds:6.1f} s ({gigabytes / seconds:.2f} GB/s), "
                f"wc -l {counted:5.1f} s, ratio {seconds / counted:5.1f}, peak {peak:5.0f} MiB with --memory {args.memory}, "
                f"σ² {fit['noise_variance']:.6f} (model sampled from: {truth:.6f})",
                flush=True,
            )
            # The same answer as in memory, on a part that fits.
            part = str(folder / f"part{ending}")
            run(covary, "sample", model, "-n", "200000", "-o", part, "--quiet")
            answers = [
                json.loads(run(covary, "fit", part, "-q", str(LATENT), "--memory", m, "--json")[2])
                for m in ("32M", "8G")
            ]
            worst = abs(answers[0]["noise_variance"] / answers[1]["noise_variance"] - 1)
            print(f"         200000 rows in parts against in memory: σ² differs by {worst:.1e} relative")
            os.remove(data)
            os.remove(part)


if __name__ == "__main__":
    main()
