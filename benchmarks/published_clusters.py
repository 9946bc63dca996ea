"""The profile `xeon-gold-6154-edr`: the cluster of Hossain and Saule, from published figures alone.

    python benchmarks/published_clusters.py [FILE.parquet]

Writes the shipped profile, or FILE. Nothing in it was measured here, and nothing is fitted to the times that
the paper publishes. Every figure is one of these:

- the paper, section IV.A: Xeon Gold 6154, 3.0 GHz base, two sockets and 36 cores a node, 388 GB of memory, no
  hyper-threading, EDR InfiniBand, at most 8 nodes; section III.C.1: an FMA of 8 doubles, 2 a cycle;
- the data sheet of the Xeon Gold 6154 (Intel ARK): 24.75 MB of L3 a socket (the paper prints 25), six
  channels of DDR4-2666, so 6 x 8 bytes x 2.666e9 = 128 GB/s a socket; of its architecture (Skylake-SP): 1 MiB
  of L2 and 32 KiB of L1 data cache a core;
- InfiniBand EDR: 100 Gbit/s of data a port and direction.

Left open by all of them, and taken as stated: a rank's share of memory is the peak over the cores, for the
paper gives its STREAM in a figure only; a message between nodes takes 1 us, the order that vendors state for
EDR, and one inside a node no longer. The times of the paper are not sensitive to either latency.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sparsecast.machines import profile as profiles
from sparsecast.machines.machine import Cache, Machine
from sparsecast.machines.profile import Profile
from sparsecast.records import MicroBenchmark
from sparsecast.system.version import VERSION

NAME = "xeon-gold-6154-edr"

#: The paper.
CLOCK_HZ, FMA_UNITS, DOUBLES_AN_FMA = 3.0e9, 2, 8
CORES, SOCKETS, MEMORY_BYTES = 36, 2, 388 * 10**9

#: The data sheet.
SOCKET_BYTES_PER_S = 6 * 8 * 2.666e9
L1_BYTES, L2_BYTES, L3_BYTES = 32 * 2**10, 2**20, int(24.75 * 2**20)

#: InfiniBand EDR.
LINK_BYTES_PER_S = 100e9 / 8

#: Taken as stated above.
LATENCY_S = 1e-6

#: Bytes of the points; between them and beyond the speed is the same.
SIZES = (8, 2**13, 2**23)


def microbenchmarks() -> list[MicroBenchmark]:
    """Return the speeds as micro-benchmarks would have found them at their limits."""
    share = SOCKETS * SOCKET_BYTES_PER_S / CORES
    points = [("fma", 1, 1, 0, 1 / (CLOCK_HZ * FMA_UNITS * DOUBLES_AN_FMA))]
    points += [("triad", CORES, 1, 3 * size, 3 * size / share) for size in SIZES]
    points += [("ping-pong", 2, 1, size, LATENCY_S + size / share) for size in SIZES]
    points += [("ping-pong", 2, 2, size, LATENCY_S + size / LINK_BYTES_PER_S) for size in SIZES]
    where = "published, not measured"
    return [
        MicroBenchmark(kind, ranks, nodes, size, None, time_s, None, False, where, VERSION)
        for kind, ranks, nodes, size, time_s in points
    ]


def published_profile() -> Profile:
    """Return the profile: a node, and the speeds of nodes of its kind."""
    machine = Machine(
        processor="Intel(R) Xeon(R) Gold 6154 CPU @ 3.00GHz",
        architecture="x86_64",
        cores=CORES,
        threads=CORES,
        caches=(Cache(1, L1_BYTES, 1), Cache(2, L2_BYTES, 1), Cache(3, L3_BYTES, CORES // SOCKETS)),
        simd=("sse2", "avx", "avx2", "fma", "avx512f"),
        memory_bytes=MEMORY_BYTES,
        system="Linux",
        published_as=NAME,
    )
    return Profile(machine, ()).with_microbenchmarks(microbenchmarks())


def main() -> None:
    """Write the profile and print where."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    shipped = Path(profiles.__file__).parent / "profiles" / f"{NAME}{profiles.SUFFIX}"
    parser.add_argument("path", nargs="?", type=Path, default=shipped, metavar="FILE.parquet")
    print(published_profile().save(parser.parse_args().path))


if __name__ == "__main__":
    main()
