"""Checks of `sparsecast doctor`, and the next steps of `sparsecast` alone."""

from __future__ import annotations

import importlib.util
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numba
import psutil

from sparsecast.api.profiles import age_days, calibrated_profile, contents, disturbances
from sparsecast.devices import DEVICES
from sparsecast.errors import InputError, MeterError, ProfileError
from sparsecast.formats.libraries import LIBRARIES
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine, detect
from sparsecast.measuring.meters import processor_meter
from sparsecast.results.machines import Finding
from sparsecast.system.jit import lost_kernels
from sparsecast.system.memory import free_bytes
from sparsecast.system.texts import counted

#: File with the rule by which Linux chooses the frequency of the first core.
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")

#: Age in days of an old profile: kernels, compilers and the machine's firmware change.
OLD_DAYS = 90

#: Least mean number of other running threads over a minute that disturbs times.
_BUSY = 0.5

#: Seconds of observation of programs, and the least part of a thread of a program that is named.
_LOOK_S, _NAMED = 0.3, 0.2


def checkup() -> list[Finding]:
    """Check everything that times, forecasts and devices depend on here; nothing is measured or changed."""
    machine = detect()
    return [
        *_processor(machine),
        *_busy(),
        *_memory_and_files(machine),
        *_calibration(machine),
        *_gpus_and_meter(),
        *_optional_packages(),
    ]


def _processor(machine: Machine) -> Iterator[Finding]:
    yield Finding("processor", f"{machine.processor}, {counted(machine.cores, 'core')}")
    cores = psutil.cpu_count() or machine.threads
    less = machine.threads < cores
    remedy = (
        "forecasts are for these: start without taskset, or outside of the container, for all" if less else ""
    )
    limit = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if limit < machine.threads:
        remedy = f"products take {limit} at most, by NUMBA_NUM_THREADS: unset it, or name --threads {limit}"
    yield Finding("threads", f"{machine.threads} of {cores} may be used", remedy)
    try:
        state = GOVERNOR.read_text().strip()
        slow = state not in ("performance", "schedutil")
        remedy = "cpupower frequency-set -g performance, as root" if slow else ""
    except OSError:
        state = "the system does not tell its rule, as on most virtual machines"
        remedy = "if times vary: ask who runs the host for a fixed frequency"
    yield Finding("frequency", state, remedy)


def _busy() -> Iterator[Finding]:
    if not hasattr(os, "getloadavg"):
        yield Finding("other programs", "unknown to this system")
        return
    load = os.getloadavg()[0]
    for _ in psutil.process_iter(["cpu_percent"]):
        pass  # a program's first reading begins its count
    time.sleep(_LOOK_S)
    programs = [each for each in psutil.process_iter(["name", "cpu_percent"]) if each.pid != os.getpid()]
    threads = {(each.info["name"], each.pid): (each.info["cpu_percent"] or 0.0) / 100 for each in programs}
    busy = sorted((program for program in threads if threads[program] > _NAMED), key=lambda p: -threads[p])
    now = [f"{name} (process {pid}) takes {threads[name, pid]:.1f}" for name, pid in busy[:3]]
    named = f"; now {', '.join(now)}" if now else ""
    remedy = "end other programs before you calibrate or measure" if load > _BUSY or now else ""
    yield Finding("other programs", f"{load:.1f} threads ran in the last minute{named}", remedy)


def _memory_and_files(machine: Machine) -> Iterator[Finding]:
    free, whole = free_bytes(), machine.memory_bytes
    remedy = "matrices larger than this are refused: end what takes it" if free < 0.2 * whole else ""
    yield Finding("memory", f"{free / 2**30:.1f} of {whole / 2**30:.1f} GiB are free", remedy)
    folder = storage.home()
    try:
        storage.ensure_writable(folder)
        existing = next(place for place in (folder, *folder.parents) if place.exists())
        free = shutil.disk_usage(existing).free
        yield Finding("data folder", f"{folder}, {free / 2**30:.1f} GiB free")
    except InputError as error:
        yield Finding("data folder", str(folder), str(error))
    lost = lost_kernels()
    state = "each process compiles anew" if lost else "kept for the next process"
    yield Finding("compiled kernels", state, lost)


def _calibration(machine: Machine) -> Iterator[Finding]:
    try:
        profile = calibrated_profile(machine)
    except ProfileError as error:
        yield Finding("calibration", "cannot be used", str(error))
        return
    age = age_days(profile.records)
    if age is None:
        yield Finding("calibration", "none yet", "sparsecast calibrate")
        return
    state = f"{contents(profile)}; {counted(round(age), 'day')} old"
    disturbed = "; ".join(f"{what} was {how.sentence()}" for what, how in disturbances(profile).items())
    remedy = disturbed or ("sparsecast calibrate, it is old" if age > OLD_DAYS else "")
    yield Finding("calibration", state, remedy)


def _gpus_and_meter() -> Iterator[Finding]:
    for device in map(DEVICES.get, DEVICES.names()):
        if device.kind != "GPU":
            continue
        try:
            described = device.describe()
            yield Finding("GPU", described.gpu.name if described.gpu else described.name)
        except InputError as error:
            yield Finding("GPU", "none that can be used", f"if there is one: {error}")
    try:
        meter = processor_meter()
    except MeterError as error:
        yield Finding("energy", "its counters cannot be read", str(error))
        return
    if meter is None:
        remedy = "name a command by --meter-command, or measure time only; virtual machines have no counters"
        yield Finding("energy", "nothing counts it here", remedy)
    else:
        yield Finding("energy", f"counted by {meter.source}, in steps of about {1e3 * meter.step_s:g} ms")


def _optional_packages() -> Iterator[Finding]:
    if importlib.util.find_spec("mpi4py") is None:
        yield Finding("MPI", "mpi4py is not installed", "pip install 'sparsecast[mpi]', for many ranks")
    else:
        run = shutil.which("mpirun")
        remedy = "" if run else "put the mpirun of your MPI library on PATH"
        yield Finding("MPI", f"mpi4py, and {run or 'no mpirun'}", remedy)
    for module, package, why in (
        ("vl_convert", "report", "figures"),
        ("jinja2", "report", "pages"),
        ("pymetis", "mpi", "METIS partitions"),
    ):
        is_there = importlib.util.find_spec(module) is not None
        remedy = "" if is_there else f"pip install 'sparsecast[{package}]'"
        yield Finding(why, "can be made" if is_there else f"{module} is not installed", remedy)
    for library in map(LIBRARIES.get, LIBRARIES.names()):
        version = library.version()
        state = f"{library.title} {version or 'is not installed'}"
        yield Finding(f"library {library.name}", state, "" if version else f"{library.remedy}, to compare it")


def first_steps() -> list[str]:
    """Return at most ten lines with the next steps for this machine."""
    machine = detect()
    try:
        age = age_days(calibrated_profile(machine).records)
    except ProfileError as error:
        return [str(error), "", "sparsecast doctor    looks at this machine"]
    example = "gallery:poisson3d?n=60"
    steps = [
        (f"sparsecast predict '{example}'", "forecasts a product in every format"),
        (f"sparsecast plan '{example}' --check", "finds the best way, and measures it"),
        (f"sparsecast report '{example}'", "writes a page to look at and to send"),
        ("sparsecast gallery", "lists matrices to try; your own are files"),
        ("sparsecast doctor", "looks at what disturbs times here"),
        ("sparsecast --help", "lists all commands"),
    ]
    if age is None:
        first = f"{machine.name} has not been calibrated yet."
        steps.insert(0, ("sparsecast calibrate", "measures this machine once, for five minutes"))
    else:
        old = ": calibrate again" if age > OLD_DAYS else ""
        first = f"{machine.name} was calibrated {counted(round(age), 'day')} ago{old}."
    width = max(len(command) for command, _ in steps) + 3
    return [first, "", *(f"{command:<{width}}{what}" for command, what in steps)]
