"""The synthetic matrices of Gahvari et al. (2007) as a suite of a calibration, and their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import inf

from sparsecast.benchmark.run import Calibration, Measured, RatingResult, RatingSuite, most_entries_here
from sparsecast.devices.target import Target
from sparsecast.matrices.suites import SUITES
from sparsecast.papers.gahvari_2007 import search_space, summary
from sparsecast.papers.gahvari_2007.search_space import Series
from sparsecast.papers.gahvari_2007.synthetic_suite import SyntheticSuite

#: Of the time of the benchmark, the share of a type of values, while others are to follow.
_TYPE_SHARE = 0.6


@SUITES.register("gahvari")
class Gahvari(RatingSuite):
    """The five-minute benchmark: some series of it, by default all 36 block sizes and the symmetric matrices.

    `range_ends` has for each type of values the largest dimension before any were cut.
    """

    name = "gahvari"
    least_budget_s = summary.LEAST_BUDGET_S

    def __init__(self, series: Sequence[Series] | None = None) -> None:
        self.series = search_space.all_series() if series is None else series
        self.range_ends: dict[str, int] = {}

    def measured(self, run: Calibration, limit_s: float) -> Iterator[Measured]:
        """Measure each type of values with all its thread counts at once."""
        end = run.used_s + limit_s
        by_type = [list(targets) for _, targets in groupby(run.targets, lambda target: target.dtype)]
        for number, targets in enumerate(by_type if self.series else (), 1):
            left_s = end - run.used_s
            dimensions = self._dimensions(run, targets[0])
            if not dimensions:
                continue
            suite = SyntheticSuite(
                targets,
                self.series,
                dimensions,
                run.device_measured,
                run.machine,
                lambda name: run.on_progress(run.used_s, run.budget_s, name),
                run.phases,
            )
            try:
                yield from suite.run(left_s if number == len(by_type) else _TYPE_SHARE * left_s)
            finally:
                run.notes += suite.notes()

    def _dimensions(self, run: Calibration, target: Target) -> tuple[int, ...]:
        threads = max(target.threads for target in run.targets)
        most_on_device = run.device_measured.most_entries(run.machine)
        cache_bytes = search_space.last_cache_bytes(run.machine, threads)
        whole, fitting = (
            search_space.dimensions(cache_bytes, target.value_bytes, entries)
            for entries in (inf, min(most_entries_here(target), most_on_device))
        )
        self.range_ends[target.dtype] = whole[-1]
        if len(fitting) < len(whole):
            run.notes.append(
                f"{target.dtype}: memory suffices for dimensions up to {fitting[-1] if fitting else 0:,} of "
                f"{whole[-1]:,}"
            )
        return fitting

    def ratings(self, run: Calibration) -> list[summary.Rating]:
        return summary.ratings(run.records, run.machine, run.bandwidths, self.range_ends)

    def result(self, run: Calibration) -> RatingResult:
        from sparsecast.papers.gahvari_2007.bench_reports import figures_of, sentence_of

        ratings = self.ratings(run)
        sentences = (sentence_of(ratings),) if ratings else ()
        return RatingResult(figures_of(ratings), sentences, tuple(summary.notes(ratings)))
