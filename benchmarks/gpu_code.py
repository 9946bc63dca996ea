"""The code of CUDA kernels, compiled for an H100 without one: instructions, barriers, registers, bytes held.

    python benchmarks/gpu_code.py [gallery:rmat?scale=14] [--formats csr,sell]

Instructions are those of the PTX: of the whole kernel, and of the shortest loop that multiplies.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from numba import cuda

from gpu_idle import IdleCuda
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import prepared
from sparsecast.devices.gpu import launching
from sparsecast.features.narrow_storage import narrowest
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.matrices.problem import Problem

_H100 = (9, 0)

_COLUMNS = (
    "format, variant, storage",
    "kernel",
    "instructions",
    "in the loop",
    "barriers",
    "registers",
    "shared bytes",
    "bytes an entry on the device",
)


class Compiler(IdleCuda):
    """A device to which everything can be copied, and for which kernels are only compiled."""

    jit = staticmethod(cuda.jit)  # type: ignore[assignment]


def counts_of(kernel: Any, signature: Any) -> list[str]:
    """Return a kernel's instructions, those of its loop, barriers, registers and bytes of shared memory."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    text = cuda.compile_ptx(kernel, signature, cc=_H100)[0]
    lines = [line.strip() for line in text[text.index("{", text.index(".entry")) :].splitlines()]
    labels = {line[:-1]: place for place, line in enumerate(lines) if line.endswith(":")}
    is_code = [bool(re.match(r"(@!?%p\d+ )?[a-z]", line)) for line in lines]
    loops = []
    for place, line in enumerate(lines):
        jump = re.search(r"bra(?:\.uni)? \t?(\S+);", line)
        if jump and labels.get(jump[1], place) < place:
            body = slice(labels[jump[1]], place + 1)
            if any(re.search(r"\b(fma|mul)\.(rn\.)?f", inside) for inside in lines[body]):
                loops.append(sum(is_code[body]))
    linker = Linker(ObjectCode.from_ptx(text.encode()), options=LinkerOptions(arch="sm_90", verbose=True))
    linker.link("cubin")
    log = linker.get_info_log()
    shared = re.search(r"(\d+) bytes smem", log)
    found = re.search(r"Used (\d+) registers", log)
    assert found, log
    numbers = sum(is_code), min(loops, default=0), text.count("bar.sync"), int(found[1])
    return [*map(str, numbers), shared[1] if shared else "0"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("matrix", nargs="?", default="gallery:rmat?scale=14")
    parser.add_argument("--formats", default="csr,sell", metavar="NAMES")
    arguments = parser.parse_args()
    problem = Problem.named(arguments.matrix)
    A, names = prepared(problem.matrix, "float64", 32), arguments.formats.split(",")
    rules = {name: DEVICES.get("cuda").kernels.get(name) for name in names}  # import numba.cuda by itself
    met: list[tuple[Any, Any]] = []
    launching.cuda = Compiler()
    launching._compiled = lambda kernel, signature: met.append((kernel, signature))
    launching._queue = lambda *arguments: None
    print(f"{arguments.matrix}: {A.nnz:,} entries")
    print(f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|")
    for name, rule in rules.items():
        storage = FORMATS.get(name)
        narrow = storage.narrowed(narrowest(problem.structure), RowBlocks.of(problem.structure))
        for parameters in [{}, narrow] if narrow and rule.reads_narrow else [{}]:
            stored = storage.from_csr(A, **parameters)
            for variant in rule.variants:
                met.clear()
                held = rule.bind(stored, variant, 1).nbytes / max(1, A.nnz)
                for number, (kernel, signature) in enumerate(met):
                    label = "" if number else " ".join([name, variant, *map(str, parameters.values())])
                    size = "" if number else f"{held:.1f}"
                    cells = label, kernel.__name__, *counts_of(kernel, signature), size
                    print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    sys.exit(main())
