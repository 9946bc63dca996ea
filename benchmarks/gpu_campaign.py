"""Everything that needs a GPU, in nine minutes: is it right, how fast is it, what does it use.

    make gpu-campaign OUT=FOLDER [MATRICES='FILE...']

It needs no network and no installed Sparsecast; it needs numba-cuda, SciPy, pyarrow, psutil and what the
command line takes. Peers and NVML are used where they are. The processor beside the GPU is measured, too,
with all its cores, and on ranks where mpi4py is. Each phase writes its results into the folder as soon as
they exist, and the last one joins their tables in results.md. Calibrations keep a journal and add to the
profile of the device, also to that of an earlier run on the same folder. What fails leaves its traceback in
errors.txt, and the next matrix or phase goes on; the exit status is then 1, unless it was a peer that failed.
A kernel whose result is wrong is not measured.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, product, zip_longest
from operator import methodcaller
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from gpu_peers import beside_graph, beside_peers, mean_ratio
from gpu_scope import SIMULATOR, SMALL, TINY, Scope, label
from ranks import MPIRUN, SPARSECAST, environment
from sparsecast.benchmark.experiments import EXPERIMENTS, ExperimentSetting
from sparsecast.benchmark.journal import Measurements
from sparsecast.benchmark.measurement import Instruments, measure_candidates
from sparsecast.benchmark.replay import replay
from sparsecast.benchmark.run import LEAST_BUDGET_S, Calibration
from sparsecast.devices.binding import prepared
from sparsecast.devices.cuda import NvidiaGPU, NvmlMeter, detect_gpu
from sparsecast.devices.device import measure_bandwidths
from sparsecast.devices.gpu import launching
from sparsecast.devices.gpu.launching import SIMULATED
from sparsecast.devices.product_timer import ProductTimer
from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import DeviceError, InputError, ProfileError
from sparsecast.machines import storage
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import Machine, detect
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.suites import SUITES, SuiteMatrix, gallery_benchmark
from sparsecast.measuring.energy import idle_power_w
from sparsecast.models import MODELS
from sparsecast.models.training import TrainingSet
from sparsecast.records import Bandwidth, Candidate, Record
from sparsecast.results.paper import DOCUMENTS
from sparsecast.system.tabular import Column, Table, document

PACKAGES = (
    *("numpy", "scipy", "numba", "numba-cuda", "cuda-core", "cuda-bindings", "cupy", "torch"),
    *("cupy-cuda12x", "cupy-cuda13x", "nvidia-ml-py", "nvmath-python"),
)

Item = TypeVar("Item")

#: Candidates of each matrix whose energy is read: of four matrices, as many as a model of power needs.
THRIFTIEST = 3

#: Of the time of a paper, what its benchmark matrices take; named matrices and plans take the rest.
PAPER_SHARE = 0.6

#: Matrices of a paper beyond so many non-zeros come last, the largest at the end.
PAPER_ENTRIES = 5_000_000

#: So many failures are noted before a phase is given up: a lost device fails at everything.
MOST_FAILURES = 20


@dataclass(frozen=True)
class CampaignGPU(NvidiaGPU):
    """The GPU, with what the campaign measures on it."""

    matrices: tuple[SuiteMatrix, ...] = ()
    variants: tuple[str, ...] = ()  # kernels that are measured; empty for all
    wrong: frozenset[str] = frozenset()  # label and dtype of those that are not, as their result was wrong
    bandwidths: tuple[Bandwidth, ...] = ()  # measured before

    def suites(self, target: Target, machine: Machine) -> tuple[list[SuiteMatrix], list[SuiteMatrix]]:
        """Return the matrices, all optional."""
        return [], list(self.matrices)

    def calibrated(self, chosen: Sequence[Candidate]) -> list[Candidate]:
        """Return the Candidates in every variant that is measured and right."""
        return [
            each
            for each in super().calibrated(chosen)
            if (not self.variants or each.kernel in self.variants)
            and f"{label(each)} {each.dtype}" not in self.wrong
        ]

    def measure_bandwidths(self, machine: Machine, threads: int) -> list[Bandwidth]:
        """Return those that were measured before."""
        return list(self.bandwidths)


@dataclass
class Campaign:
    """One run."""

    out: Path
    machine: Machine  # with its GPU
    given: Sequence[str]  # matrix files for the peers
    scope: Scope
    device: CampaignGPU = field(default_factory=CampaignGPU)  # phases replace it by one that knows more
    failures: int = 0
    #: Of the given matrices, those that products of real values were measured of.
    usable: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path = self.out / f"{self.machine.name}.parquet"
        self.device = replace(
            self.device, matrices=tuple(self.scope.matrices(self.machine)), variants=self.scope.variants
        )

    def write(self, name: str, found: Any) -> None:
        """Write a result as JSON, whole or not at all."""

        def dump(path: Path) -> None:
            path.write_text(json.dumps(found, indent=1), encoding="utf-8")

        storage.write_atomically(self.out / name, dump)

    @contextmanager
    def kept_going(self, what: str) -> Iterator[None]:
        """Note the failure of the body, and go on; not after too many."""
        try:
            yield
        except Exception as error:  # whatever it is: what comes after it may well succeed
            self.failed(what, error)

    def failed(self, what: str, error: Exception) -> None:
        """Note a failure; raise it again where there were too many."""
        self.failures += 1
        self.note(what)
        if self.failures > MOST_FAILURES:
            raise error

    def note(self, what: str) -> None:
        """Write the traceback of the exception at hand to errors.txt."""
        with (self.out / "errors.txt").open("a", encoding="utf-8") as stream:
            stream.write(f"{what}\n{traceback.format_exc()}\n")

    @property
    def profile(self) -> Profile:
        """What was calibrated so far, by earlier runs on the folder too."""
        return Profile.load(self.path) if self.path.exists() else Profile(self.machine, ())

    def candidates(self, problem: Problem, dtype: str) -> list[Candidate]:
        """Return the Candidates of a matrix."""
        target = Target("cuda", dtype, 32, 1)
        return self.device.calibrated(whole_matrix(problem.structure, target, self.machine).candidates)

    def calibrate(self, device: CampaignGPU, dtype: str, budget_s: float) -> None:
        """Add the matrices of a device to the profile, as far as the time lasts; none in too little."""
        if budget_s < LEAST_BUDGET_S:
            left = f"{budget_s:.1f} s left, expected {LEAST_BUDGET_S:g}"
            print(f"not calibrated in {dtype}: {left}", flush=True)
            return
        run = Calibration(
            self.machine,
            [Target("cuda", dtype, 32, 1)],
            budget_s,
            device=device,
            path=self.path,
            effort=self.scope.effort,
            adds=True,
            on_failure=lambda matrix, error: self.failed(f"{matrix} in {dtype}", error),
        )
        run.run()
        if run.interrupted:
            raise KeyboardInterrupt


def describe(campaign: Campaign, end_s: float) -> None:
    """Write the device and the versions."""
    installed: dict[str, str] = {}
    for each in importlib.metadata.distributions():  # of two of a name, the first is imported
        installed.setdefault((each.name or "").replace("_", "-"), each.version)
    versions = {name: installed[name] for name in PACKAGES if name in installed}
    described = {"python": platform.python_version(), "packages": versions, "simulated": SIMULATED}
    campaign.write("device.json", {"machine": campaign.machine.to_dict(), **described})


def correctness(campaign: Campaign, end_s: float) -> None:
    """Compare every kernel with the oracle; on a device with pytest, run the tests of the kernels too."""
    with (campaign.out / "correctness.txt").open("w", encoding="utf-8") as stream:
        for dtype in campaign.scope.dtypes:
            for line in _against_oracle(campaign, dtype):
                print(line, file=stream, flush=True)


def device_tests(campaign: Campaign, end_s: float) -> None:
    """Run the tests of the kernels, where pytest is."""
    if campaign.scope.is_device and all(map(importlib.util.find_spec, ("pytest", "hypothesis"))):
        tests = Path(__file__).resolve().parents[1] / "tests" / "devices" / "cuda" / "on_device.py"
        command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", str(tests)]
        _run_until(end_s, command, campaign.out / "correctness.txt", "a")


def _against_oracle(campaign: Campaign, dtype: str) -> Iterator[str]:
    """Compare every kernel with the oracle on a small matrix; on one of blocks, for BCSR's sake."""
    for name in ("circuit?n=24", "elasticity3d?n=2") if SIMULATED else ("circuit?n=2000", "elasticity3d?n=9"):
        problem = Problem.of(prepared(Problem.named(f"gallery:{name}").matrix, dtype, 32), name)
        chosen = whole_matrix(problem.structure, Target("cuda", dtype, 32, 1), campaign.machine).candidates
        timer = None
        for candidate in NvidiaGPU().calibrated(chosen):
            what = f"{label(candidate)} {dtype}"
            with campaign.kept_going(f"correctness of {what}"):
                try:
                    timer = timer or ProductTimer(problem.matrix, chosen[0], NvidiaGPU())
                    error = timer.build(candidate).error
                except Exception:
                    wrong = campaign.device.wrong | {what}
                    campaign.device = replace(campaign.device, wrong=wrong)
                    raise
                yield f"{what} on {name}: equals the oracle, relative error {error:.1e}"


def bandwidth(campaign: Campaign, end_s: float) -> None:
    """Measure stream reads and copies, whose bytes count twice, and transfers, at several sizes."""
    effort = campaign.scope.effort
    for size in _while_time(campaign.scope.stream_bytes, end_s):
        found = measure_bandwidths(campaign.device, [size], 1, effort)
        known = (*campaign.device.bandwidths, *found)
        campaign.device = replace(campaign.device, bandwidths=known)
        rows = [
            {
                "stream": each.kind,
                "bytes": each.bytes // 2 if each.kind == "copy" else each.bytes,
                "time_s": each.time_s,
                "noise": each.noise,
                "bytes_per_s": each.bandwidth_bytes_per_s,
            }
            for each in known
        ]
        campaign.write("bandwidth.json", rows)


def calibration(campaign: Campaign, end_s: float) -> None:
    """Measure the benchmark matrices in every format and variant, one dtype after the other."""
    for number, dtype in enumerate(campaign.scope.dtypes, 1):
        share = 0.65 if number < len(campaign.scope.dtypes) else 1.0
        with campaign.kept_going(f"calibration in {dtype}"):
            campaign.calibrate(campaign.device, dtype, share * (end_s - perf_counter()))


def papers(campaign: Campaign, end_s: float) -> None:
    """Repeat the experiments of papers, in single precision first as they did: tables, models and plans.

    Plans are built for the matrices that are given, and on a device alone.
    """
    turns = list(product(("float32", "float64"), campaign.scope.papers))
    for number, (dtype, name) in enumerate(turns):
        start_s = perf_counter()
        share_s = (end_s - start_s) / (len(turns) - number)
        with campaign.kept_going(f"{name} in {dtype}"):
            suite = SUITES.get(name.partition("-")[0])().whole(campaign.machine, 1)
            kept = [matrix for matrix in suite if campaign.scope.has_time_for(matrix)]
            kept += [gallery_benchmark(each) for each in campaign.scope.energy]  # what models are tried on
            kept.sort(key=lambda matrix: max(matrix.entries, PAPER_ENTRIES))
            device = replace(campaign.device, matrices=tuple(kept), variants=campaign.scope.paper_variants)
            campaign.calibrate(device, dtype, PAPER_SHARE * share_s)
            left_s = share_s - (perf_counter() - start_s)
            experiment = EXPERIMENTS.get(name)()
            if campaign.scope.is_device:
                report = experiment.run(
                    ExperimentSetting("cuda", dtype, campaign.profile, left_s, campaign.usable)
                )
            else:
                report = experiment.from_records(campaign.profile, ExperimentSetting("cuda", dtype))
            campaign.write(f"{name}-{dtype}.json", document(DOCUMENTS["paper NAME"], report))
            page = replace(report, charts={}).to_markdown("make gpu-campaign")
            (campaign.out / f"{name}-{dtype}.md").write_text(page, encoding="utf-8")


def cold(campaign: Campaign, end_s: float) -> None:
    """Measure again, from copies that exceed L2 twice, what would lie in it; smaller ones last."""
    assert campaign.machine.gpu is not None
    l2 = campaign.machine.gpu.l2_bytes
    traffic = {
        record.matrix: record.traffic_bytes
        for record in campaign.profile.records
        if record.regime == "warm" and record.traffic_bytes <= l2
    }
    fitting = [each for each in campaign.device.matrices if each.problem.specification in traffic]
    fitting.sort(key=lambda matrix: -traffic[matrix.problem.specification])
    device = replace(campaign.device, matrices=tuple(fitting), cold_bytes=2 * l2)
    campaign.calibrate(device, campaign.scope.dtypes[0], end_s - perf_counter())


def _while_time(items: Sequence[Item], end_s: float) -> Iterator[Item]:
    """Give items until the time is over."""
    for item in items:
        if perf_counter() < end_s:
            yield item


def peers(campaign: Campaign, end_s: float) -> None:
    """Measure every candidate beside every peer, in turn; a peer that is missing or fails says so."""
    found: list[dict[str, Any]] = []
    generated = [f"gallery:{each}" for each in campaign.scope.peers]
    in_turn = [each for each in chain.from_iterable(zip_longest(campaign.given, generated)) if each]
    for specification in _while_time(in_turn, end_s):
        with campaign.kept_going(f"peers on {specification}"):
            try:
                found.append(beside_peers(campaign, specification))
                campaign.usable += [specification] if specification in campaign.given else []
            except DeviceError:  # it is lost
                raise
            except InputError as error:
                found.append({"matrix": specification, "left_out": str(error)})
        campaign.write("peers.json", {"geometric_mean": mean_ratio(found), "matrices": found})


def graphs(campaign: Campaign, end_s: float) -> None:
    """Measure products of small matrices launched one by one, beside a graph of as many launched at once."""
    found: list[dict[str, Any]] = []
    if launching.core is None:
        found.append({"left_out": "graphs are made by cuda.core on a device"})
    else:
        for specification in _while_time(SMALL, end_s):
            with campaign.kept_going(f"a graph of {specification}"):
                found.append(beside_graph(campaign, specification))
    campaign.write("graphs.json", found)


def energy(campaign: Campaign, end_s: float) -> None:
    """Read the power of the idle device, then the joules of the fastest candidates of large matrices."""
    try:
        meter = NvmlMeter()
    except DeviceError as error:
        campaign.write("energy.json", {"idle_w": "not measured", "why": str(error), "candidates": []})
        return
    time.sleep(1.0)  # the phase before has left the device warm and clocked up
    report: dict[str, Any] = {"idle_w": idle_power_w(meter) or "not measured", "candidates": []}
    campaign.write("energy.json", report)
    for specification in _while_time(campaign.scope.energy, end_s):
        records = _energy_records(campaign, gallery_benchmark(specification).problem, meter)
        report["candidates"] += [
            {
                "matrix": record.matrix,
                "candidate": record.candidate.to_dict(),
                "time_s": record.time_s,
                "energy_j": record.energy_j or "not measured",
            }
            for record in records
        ]
        campaign.write("energy.json", report)


def _energy_records(campaign: Campaign, problem: Problem, meter: NvmlMeter) -> list[Record]:
    """Return the Records, with energy, of a matrix' fastest candidates; all go to the profile too."""
    candidates, effort = campaign.candidates(problem, campaign.scope.dtypes[0]), campaign.scope.effort
    timed = measure_candidates(problem, "gallery", candidates, effort, Instruments(campaign.device))
    fastest = sorted(timed, key=lambda record: record.time_s)[:THRIFTIEST]
    chosen, instruments = [record.candidate for record in fastest], Instruments(campaign.device, meter)
    metered = measure_candidates(problem, "gallery", chosen, effort, instruments)
    measured = Measurements()
    measured.add(problem, [*(record for record in timed if record not in fastest), *metered])
    measured.into(campaign.profile).save(campaign.path)
    return metered


def evaluation(campaign: Campaign, end_s: float) -> None:
    """Score every model on the matrices that it has not seen; a model that refuses says why."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for dtype in campaign.scope.dtypes:
        training = TrainingSet.of(campaign.profile, campaign.profile.select(dtype=dtype))
        try:
            replayed = replay(training, [MODELS.get(name) for name in MODELS.names()])
        except ProfileError as error:
            found[dtype] = {name: {"refused": str(error)} for name in MODELS.names()}
        else:
            found[dtype] = {name: asdict(score) for name, score in replayed.models.items()}
            found[dtype] |= {name: {"refused": why} for name, why in replayed.refused.items()}
    campaign.write("evaluation.json", found)


def processor(campaign: Campaign, end_s: float) -> None:
    """Calibrate the processor with all cores and with one, and measure it beside its peers and on ranks."""
    if not campaign.scope.processor_matrices:
        return
    matrices = [*campaign.usable, *(f"gallery:{each}" for each in campaign.scope.peers)]
    cores, share_s = campaign.machine.cores, end_s - perf_counter()
    calibrate = [*SPARSECAST, "calibrate", "--dtype", "float64", "--budget"]
    calibrate.append(f"{max(LEAST_BUDGET_S, 0.15 * share_s):g}")
    for threads in dict.fromkeys((cores, 1)):
        command = [*calibrate, "--threads", str(threads)]
        with campaign.kept_going(f"processor, {threads} threads"):
            _run_until(end_s, command, campaign.out / f"processor-{threads}.txt")
    with campaign.kept_going("processor beside its peers"):
        command = [sys.executable, str(Path(__file__).with_name("run.py")), "peers", "--threads", str(cores)]
        command += ["--lines", str(campaign.out / "processor-peers.jsonl")]
        command += matrices[: campaign.scope.processor_matrices]
        peers_end_s = perf_counter() + 0.6 * (end_s - perf_counter())
        _run_until(peers_end_s, command, campaign.out / "processor-peers.txt")
    if importlib.util.find_spec("mpi4py") and shutil.which(MPIRUN):
        command = [MPIRUN, "-n", str(cores), *SPARSECAST, "measure", matrices[0], "--format", "csr"]
        with campaign.kept_going("processor, ranks"):
            _run_until(end_s, command, campaign.out / "processor-ranks.txt")


def _run_until(end_s: float, command: Sequence[str], path: Path, mode: str = "w") -> None:
    """Run a command until then, with all that it starts, and keep what it prints; raise where it fails."""
    with path.open(mode, encoding="utf-8") as stream:
        options: dict[str, Any] = {"env": environment(), "start_new_session": True}
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, **options)
        try:
            status = process.wait(timeout=max(1.0, end_s - perf_counter()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            stream.write("\nNOT FINISHED: its time was over; what is not listed was not done\n")
            status = int(" FAILED " in path.read_text(encoding="utf-8"))  # a test
    if status:
        raise RuntimeError(f"{path.stem}: a command ended with status {status}, see {path}")


def page(campaign: Campaign, end_s: float) -> None:
    """Join all that was found in one page of Markdown."""
    sections = [f"# {campaign.machine.gpu.name if campaign.machine.gpu else 'No GPU'}", "make gpu-campaign"]
    for path in sorted(campaign.out.glob("*.json*")):
        text = path.read_text(encoding="utf-8")
        found = list(map(json.loads, text.splitlines())) if path.suffix == ".jsonl" else json.loads(text)
        if isinstance(found, dict):
            scored = {name: found[name] for name in campaign.scope.dtypes if name in found}
            found = found.get("matrices") or found.get("candidates") or _rows_of_scores(scored)
        if found:
            sections += [f"## {path.stem}", _markdown(found)]
    sections += [path.read_text(encoding="utf-8") for path in sorted(campaign.out.glob("*-float*.md"))]
    for path in sorted(campaign.out.glob("processor-*.txt")):
        sections += [f"## {path.stem}", f"```\n{path.read_text(encoding='utf-8').strip()}\n```"]
    (campaign.out / "results.md").write_text("\n\n".join(sections) + "\n", encoding="utf-8")


def _rows_of_scores(scored: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the scores of models by type as rows."""
    return [
        {"type": dtype, "model": name, **score}
        for dtype, of_type in scored.items()
        for name, score in of_type.items()
    ]


def _markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as a table of their plain values; times by name become columns of their own."""
    flat = []
    for row in rows:
        plain = {key: value for key, value in row.items() if not isinstance(value, dict | list)}
        if candidate := row.get("candidate"):
            plain["candidate"] = label(Candidate.from_dict(candidate))
        flat.append(plain | {f"{name}_s": seconds for name, seconds in (row.get("times_s") or {}).items()})
    columns = [Column(key, key, methodcaller("get", key)) for key in dict.fromkeys(chain.from_iterable(flat))]
    return Table("", tuple(columns), flat).to_markdown()


#: The phases and the seconds of each; what one leaves goes to the next.
PHASES = (
    (describe, 5),
    (correctness, 20),
    (bandwidth, 15),
    (calibration, 120),
    (peers, 90),
    (energy, 35),
    (cold, 15),
    (graphs, 5),
    (papers, 80),
    (evaluation, 10),
    (processor, 90),
    (device_tests, 45),
    (page, 5),
)


def run(campaign: Campaign) -> None:
    """Run every phase and say what became of it."""
    end_s = perf_counter()
    for phase, seconds in PHASES:
        end_s += seconds
        start, failures = perf_counter(), campaign.failures
        try:
            with campaign.kept_going(phase.__name__):
                phase(campaign, end_s)
        except Exception as error:  # noted by kept_going, which has seen too many of them
            print(f"given up: {type(error).__name__}: {error}", flush=True)
        failed = campaign.failures - failures
        outcome = f"{failed} FAILED, see errors.txt" if failed else "done"
        taken = f"{perf_counter() - start:6.1f} s of {seconds:3}"
        print(f"{phase.__name__:12} {taken}  {outcome}", flush=True)


def quicken_simulator() -> None:
    """Keep the simulator's threads on one core, where they wait for each other the shortest."""
    sys.setswitchinterval(1e-3)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def main(gpu: GPU | None = None, scope: Scope | None = None) -> int:
    """Run the campaign and return the exit status; by default on the GPU at hand, and all of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="FOLDER")
    parser.add_argument("matrices", nargs="*", metavar="FILE", help="for the peers")
    parser.add_argument("--tiny", action="store_true", help="for the tests: matrices for the simulator")
    arguments = parser.parse_args()
    try:
        if arguments.tiny and SIMULATED:
            quicken_simulator()
            gpu = SIMULATOR
        gpu = gpu or detect_gpu()
        storage.ensure_writable(arguments.out)
        machine = replace(detect(), device=NvidiaGPU.name, gpu=gpu)
        scope = scope or (TINY if arguments.tiny else Scope())
        campaign = Campaign(arguments.out, machine, arguments.matrices, scope)
        run(campaign)
        return 1 if campaign.failures else 0
    except InputError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
