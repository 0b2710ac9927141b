"""Methods side by side: timed in turn, judged, told, and saved with date, versions and machine."""

import datetime
import json
import os
import platform
import subprocess
import time
import warnings
from dataclasses import dataclass, field
from importlib import metadata

import numpy as np
from rscript import RSCRIPT

#: Eigenvalues are right when their largest relative error is below this.
RIGHT = 1e-6
#: A log-likelihood is as good as another when it is no more than this below it, per row.
AS_GOOD = 1e-3


@dataclass
class Method:
    """Something that is timed: `run` gives what `judge` then judges, outside the time."""

    name: str
    run: object
    judge: object = None
    times: int | None = None  # how often, when it is too slow for all repeats
    clocked: bool = False  # `run` gives (seconds, result) itself: another program, whose start is not the method's


@dataclass
class Case:
    name: str
    what: str
    methods: list
    goal: str = ""
    results: list = field(default_factory=list)


SHOWN = {
    "log_likelihood": "ll/row {:.6f}",
    "bound": "bound/row {:.6f}",
    "noise_variance": "σ² {:.6g}",
    "eigenvalue_error": "λ error {:.1e}",
    "kept_trace": "kept trace {:.6f}",
    "of_components": "of components {:.6f}",
    "rmse": "RMSE {:.4f}",
    "contrast": "contrast {:.6f}",
    "gradient": "max|G| {:.1e}",
    "failed": "failed: {}",
}


def measure(case, repeats):
    """Everybody once, then everybody again: what else the machine does falls on all alike."""
    best = {m.name: np.inf for m in case.methods}
    quality = {}
    for turn in range(repeats):
        for method in case.methods:
            if turn >= (repeats if method.times is None else method.times):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                started = time.perf_counter()
                try:
                    result = method.run()
                except Exception as error:  # a peer that gives up is a result too
                    method.times, result = turn, None
                    quality[method.name] = {"failed": str(error)}
                seconds = time.perf_counter() - started
                if method.clocked and result is not None:
                    seconds, result = result
                best[method.name] = min(best[method.name], seconds)
            if turn == 0 and method.judge and result is not None:
                quality[method.name] = method.judge(result)
            del result
    for method in case.methods:
        found = quality.get(method.name, {})
        case.results.append({"method": method.name, "seconds": best[method.name], **found})
    ours = case.results[0]
    for result in case.results:
        result["right"] = is_right(result, ours)
        result["ratio"] = result["seconds"] / ours["seconds"]


def is_right(result, ours):
    """Eigenvalues near the reference, and a likelihood not below ours; the noise of n < p is judged by the reader."""
    if "failed" in result:
        return False
    if "eigenvalue_error" in result:
        # Single precision of the data leaves its mark on everybody.
        return result["eigenvalue_error"] < max(RIGHT, 3 * ours["eigenvalue_error"])
    if "log_likelihood" in result:
        return result["log_likelihood"] > ours["log_likelihood"] - AS_GOOD
    if "bound" in result:
        return result["bound"] > ours["bound"] - AS_GOOD
    if "contrast" in result:
        return result["contrast"] > ours["contrast"] - AS_GOOD
    if "inertia" in result:
        return result["inertia"] < ours["inertia"] * (1.0 + AS_GOOD)
    return True


def tell(case):
    print(f"{case.name}: {case.what}" + (f"   [{case.goal}]" if case.goal else ""))
    for r in case.results:
        parts = [f"  {r['method']:30s} {r['seconds']:9.3f} s {r['ratio']:8.2f}×"]
        parts += [text.format(r[key]) for key, text in SHOWN.items() if key in r]
        parts += ["not right"] * (not r["right"])
        print("  ".join(parts))
    peers = [r for r in case.results[1:] if r["right"]]
    if peers:
        fastest = min(peers, key=lambda r: r["seconds"])
        print(f"  → {fastest['ratio']:.2f}× {fastest['method']}")
    print(flush=True)


def versions():
    names = ["covary", "numpy", "scikit-learn", "ppca-rs", "ppca-py", "vbpca-py", "python-picard"]
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    if RSCRIPT:
        found["R"] = subprocess.run([RSCRIPT, "--version"], capture_output=True, text=True).stdout.split("version ")[1].split()[0]
    return {**found, "python": platform.python_version()}


def machine():
    """How many cores of which processor."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            name = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores, {name}"


def save(path, quick, cases, keep):
    """Writes the numbers; with `keep`, beside those of other cases that the file has from this machine and these versions."""
    known = []
    about = {"date": datetime.date.today().isoformat(), "machine": machine(), "versions": versions(), "quick": quick}
    if keep and os.path.exists(path):
        with open(path) as file:
            before = json.load(file)
        same = all(before.get(key) == about[key] for key in ("machine", "versions", "quick"))
        known = before["cases"] if same else []
    again = {case["case"] for case in cases}
    with open(path, "w") as file:
        json.dump({**about, "cases": [case for case in known if case["case"] not in again] + cases}, file, indent=1, ensure_ascii=False)
        file.write("\n")
