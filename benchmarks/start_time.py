"""What a fresh process pays: the import, and the way to its first product.

Run as ``python benchmarks/start_time.py [PROFILE]``, with the name or path of a profile of any machine;
without one, this machine's. Every line is the wall-clock time of whole processes, the interpreter's own
start included; each is run once before, so that files and compiled kernels are in their caches. The lines
are sampled in turn.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

PROCESSES = 9

MATRIX = 'A = sc.gallery("poisson2d", n=100); x = np.ones(A.shape[1])'
BIND = (
    "import numpy as np; import sparsecast as sc; from sparsecast.devices.binding import bind; "
    f'{MATRIX}; c = sc.Candidate("csr", "KERNEL", "cpu", "float64", 32, 1); '
    "bind(A, c).product(x, np.empty(A.shape[0]))"
)
PLAN = (
    "import sys; import numpy as np; import sparsecast as sc; "
    f"{MATRIX}; p = sc.profile(*sys.argv[1:]); sc.compile(A, sc.plan(A, p, threads=1)) @ x"
)


def codes() -> dict[str, str]:
    """Return what each line of the table runs."""
    from sparsecast.devices import DEVICES

    kernel = DEVICES.get("cpu").kernels.get("csr").variants[0]
    return {
        "python alone": "pass",
        "import numpy": "import numpy",
        "import sparsecast": "import sparsecast",
        "import sparsecast.api": "import sparsecast.api",
        "first product, CSR bound": BIND.replace("KERNEL", kernel),
        "first product, planned and compiled": PLAN,
    }


def seconds(code: str, arguments: list[str]) -> float:
    """Return the wall-clock time of one fresh process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    return time.perf_counter() - start


def main(*arguments: str) -> None:
    """Print the table."""
    tasks = codes()
    for code in tasks.values():
        seconds(code, list(arguments))
    samples: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(PROCESSES):
        for name, code in tasks.items():
            samples[name].append(seconds(code, list(arguments)))
    print(f"{'fresh process':36} {'median, s':>10} {'least':>8} {'most':>8} {'beyond python, s':>17}")
    bare = statistics.median(samples["python alone"])
    for name, values in samples.items():
        middle = statistics.median(values)
        print(f"{name:36} {middle:10.3f} {min(values):8.3f} {max(values):8.3f} {middle - bare:17.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
