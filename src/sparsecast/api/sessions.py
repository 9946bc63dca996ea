"""A session: one machine and one setting, for forecasts, plans and products of any number of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Unpack

from sparsecast.api.calibrating import profile_for
from sparsecast.api.forecast_basis import ForecastBasis, is_local, rounding
from sparsecast.api.forecasting import (
    best_plan,
    check_probe,
    in_one_prediction,
    merge_plans,
    printed_planner,
    thread_numbers,
    within_memory,
    without_joules,
)
from sparsecast.api.matrices import structure as structure_of
from sparsecast.api.profiles import (
    asked_machine,
    calibrated_profile,
    energy_model,
    model_records,
    require_own,
)
from sparsecast.api.settings import SessionOptions, Setting, Trust, refuse_unknown, setting_and_trust
from sparsecast.benchmark.trials import UNLIMITED, Outcome, Spending, in_best_order, may_pay
from sparsecast.devices import AUTO, DEVICES, machine_of, parse_device
from sparsecast.devices.target import Choice, Target, memory_bytes, whole_matrix
from sparsecast.errors import DisturbedError, InputError, ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.problem import Problem
from sparsecast.models import model_for
from sparsecast.models.forecaster import Forecaster
from sparsecast.planning.drift import Drift
from sparsecast.planning.plan import Goal, refuse_objective
from sparsecast.results.plan import Plan, PlannedBlock
from sparsecast.results.prediction import Prediction

if TYPE_CHECKING:
    from sparsecast.api.applications import CgOptions, PageRankOptions
    from sparsecast.api.campaigns import CollectionOptions
    from sparsecast.measuring.energy import Meter
    from sparsecast.operators.applications.cg import Solution
    from sparsecast.operators.applications.pagerank import PageRank
    from sparsecast.operators.block_operator import BlockOperator
    from sparsecast.records import Candidate, Forecast, Record
    from sparsecast.results.evaluation import Evaluation

#: Seconds for which a session assumes that the machine is as fast as the reference products were.
DRIFT_HOLDS_S = 60.0

#: Options of Trust, which do not count where products are only measured.
UNMEASURED = tuple(option.name for option in fields(Trust))

#: What the matrices of one fitted model have in common: the target; of a Structure its groups, and whether
#: the order of its rows is known.
_Kind = tuple[Target, frozenset[str] | None, bool]


def session(profile: str | Path | Profile | None = None, **options: Unpack[SessionOptions]) -> Session:
    """Return a session on a machine.

    Parameters
    ----------
    profile : str, Path or Profile, optional
        Profile of the machine: a name of ``sparsecast machines``, a file, or a Profile. By default this
        machine's; if needed, the first call calibrates it for QUICK_BUDGET_S seconds, after compiling.
    **options
        The fields of `Setting` (`threads`, `dtype`, `device`, `vectors`, `values`, `library`)
        and of `Trust` (`model`, `drift_correction`, `as_printed`, `power_model`, `energy_model`, `anyway`).

    Returns
    -------
    Session

    Raises
    ------
    ProfileError, UnknownNameError
        If there is no such profile or model, or the file cannot be used.

    Examples
    --------
    >>> session = sc.session("nvidia-h100", dtype="float32")
    >>> session.predict(sc.gallery("poisson2d", n=100)).forecasts[0].candidate.format
    'dia'
    """
    setting, trust = setting_and_trust(options)
    known = profile if profile is None or isinstance(profile, Profile) else find_profile(profile)
    return Session(known, Setting(**setting), Trust(**trust))


@dataclass(eq=False)
class Session:
    """Forecasts, plans and products on one machine in one setting; `session` makes one.

    The profile is read once, and a model is fitted once for all matrices with the same feature groups. The
    current speed of the machine is measured by reference products, and used for DRIFT_HOLDS_S seconds. New
    measurements are kept; later sessions learn from them.

    Attributes
    ----------
    profile : Profile or None
        None until the first call that needs the profile of this machine.
    setting : Setting
    trust : Trust
    """

    profile: Profile | None
    setting: Setting = field(default_factory=Setting)
    trust: Trust = field(default_factory=Trust)
    _is_this_machine: bool = field(init=False)
    _by_threads: dict[int, Session] = field(default_factory=dict, init=False, repr=False)
    _targets: set[Target] = field(default_factory=set, init=False, repr=False)
    _bases: dict[tuple[_Kind, bool], ForecastBasis] = field(default_factory=dict, init=False, repr=False)
    _energies: dict[_Kind, Forecaster | None] = field(default_factory=dict, init=False, repr=False)
    _drifts: dict[Target, tuple[float, Drift, tuple[str, ...]]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        _ = self.trust.time_model  # unknown names are refused before anything is measured
        if self.trust.energy_model is not None:
            model_for("energy", self.trust.energy_model)
        self._is_this_machine = self.profile is None

    def changed(self, **options: Unpack[SessionOptions]) -> Session:
        """Return a session on the same machine with other options."""
        setting, trust = setting_and_trust(options)
        # The profile of this machine is that of its device.
        profile = None if self._is_this_machine and "device" in setting else self.profile
        other = Session(profile, replace(self.setting, **setting), replace(self.trust, **trust))
        other._is_this_machine, other._drifts = self._is_this_machine, self._drifts
        return other

    def question(self, A: Problem | Structure) -> tuple[Profile, Target]:
        """Return the profile and the target for a matrix.

        This machine is calibrated first, with a line on standard error, if its profile lacks Records.
        """
        if self._is_this_machine:
            machine = machine_of(self._device_here)
            target = self.setting.target(A, machine)
            # Records of one vector are enough to answer for several.
            of_one = replace(target, vectors=1)
            if self.profile is None or not (target in self._targets or model_records(self.profile, of_one)):
                self.profile = profile_for(machine, of_one, self._device_here)
            self._targets.add(target)
            return self.profile, target
        assert self.profile is not None, "the profile of another machine is given"
        machine = asked_machine(self.profile, self.setting.device)
        is_here = self.setting.library is None or is_local(machine)
        return self.profile, self.setting.target(A, machine, is_here=is_here)

    @property
    def _device_here(self) -> str:
        """The device of this machine that is measured."""
        return PROCESSOR if self.setting.device is None else self.setting.device

    def basis(self, A: Problem | Structure, *, transfers: bool = True) -> ForecastBasis:
        """Return the fitted model for a matrix; without `transfers`, from Records of the setting alone."""
        profile, target = self.question(A)
        asked = self._kind(A, target), transfers
        if asked not in self._bases:
            self._bases[asked] = ForecastBasis.of(A, profile, target, self.trust, transfers=transfers)
        return self._bases[asked]

    @staticmethod
    def _kind(A: Problem | Structure, target: Target) -> _Kind:
        if not isinstance(A, Structure):
            return target, None, True
        lengths = A.groups.get("row_lengths")
        return target, frozenset(A.groups), getattr(lengths, "mispredicted", None) is not None

    def _energy(self, A: Problem | Structure, basis: ForecastBasis) -> Forecaster | None:
        """Return what forecasts joules; None where none were measured here, and no model is named."""
        if self.trust.power_model is not None:  # which adds to the times of the basis, corrected or not
            return self.trust.power_model.model(basis.model)
        kind, name = self._kind(A, basis.target), self.trust.energy_model
        if kind not in self._energies:
            is_known = name is not None or basis.transferred_from is None
            self._energies[kind] = energy_model(basis.training, name) if is_known else None
        return self._energies[kind]

    def _drift(self, basis: ForecastBasis, *, is_measured: bool = True) -> tuple[Drift, tuple[str, ...]]:
        """Return how the machine has drifted, and what to say of that and of the calibration."""
        if not (is_measured and self.trust.drift_correction):
            return basis.trust(drift_correction=False)
        held = self._drifts.get(basis.source)
        if held is None or monotonic() - held[0] > DRIFT_HOLDS_S:
            held = self._drifts[basis.source] = (monotonic(), *basis.trust(drift_correction=True))
        return held[1:]

    def drift(self, A: Problem | Structure) -> Drift:
        """Return how the machine has drifted since it was calibrated, for products of a matrix."""
        return self._drift(self.basis(A))[0]

    def refuse_given(self, what: str, *names: str) -> None:
        """Raise an InputError for an option of this session, of these names, that does not count."""
        for part in (self.setting, self.trust):
            for option in fields(part):
                given = getattr(part, option.name)
                if option.name in names and given != option.default:
                    why = "expected none, as it does not count; leave it out"
                    raise InputError(f"{option.name} {given!r} of {what}: {why}")

    def require_here(self) -> None:
        """Raise an InputError for the profile of another machine, where something is measured or run."""
        if self.profile is not None and not is_local(self.profile.machine):
            raise InputError(
                f"a session on {self.profile.name}: expected this machine, where products are done; make one "
                f"without a profile"
            )

    def _of_each_number(self, A: Problem | Structure) -> list[Session]:
        """Return a session for each number of threads that the profile has Records of."""
        profile, target = self.question(A)
        counts = thread_numbers(profile, target)
        self._by_threads |= {n: self.changed(threads=n) for n in counts if n not in self._by_threads}
        return [self._by_threads[count] for count in counts]

    def _tried(
        self, A: Problem | Structure, spending: Spending | None
    ) -> tuple[ForecastBasis, Outcome | None]:
        """Return the basis for a matrix; with `spending` its model is corrected by what is measured here.

        With stated seconds, the profile must be that of this machine, and the setting of the target alone
        answers, which must forecast plain CSR.
        """
        if spending is None or isinstance(A, Structure):
            return self.basis(A), None
        profile, target = self.question(A)
        here = is_local(profile.machine)
        if spending.seconds is None:
            basis = self.basis(A)
            return basis.tried(A, spending) if basis.source == target and here else (basis, None)
        if not here:
            raise InputError(
                f"a probe for {profile.name}: expected this machine, where the products are measured; use "
                f"its own profile, or leave --probe out"
            )
        basis, outcome = self.basis(A, transfers=False).tried(A, spending)
        if outcome is None:
            raise ProfileError(
                f"the {self.trust.time_model} model has no forecast of CSR for this matrix: expected one, "
                f"which a probe compares with its measurement; choose another model, or leave --probe out"
            )
        return basis, outcome

    def predict(self, A: Any, *, probe_s: float | None = None) -> Prediction:
        """Forecast the product of a matrix in every format that suits it.

        If the profile has no Records of the type of values, or of the number of threads, the forecasts are
        derived from other Records, with wider intervals and a note (`sparsecast.models.transfer`). A probe
        needs Records of the setting.

        Parameters
        ----------
        A : sparse matrix or Structure
            Of the values, only their symmetry and the number of zeros are read.
        probe_s : float, optional
            Seconds to measure for. CSR is measured here in any case, and the other forecasts are corrected by
            it. Then the candidates whose intervals reach below the fastest one are built and measured, the
            most promising first. The measurement shows the current speed of the machine, so no reference
            products are timed. The first probe with a profile fits the correction, which takes some seconds
            once.

        Returns
        -------
        Prediction
            Forecasts, fastest first.

        Raises
        ------
        InputError
            If the matrix and the setting do not fit, or a real type is set for a complex matrix; if `probe_s`
            is negative, or given without `drift_correction`, with a Structure or with the profile of another
            machine.
        ProfileError
            If the profile has too few Records of the device, or for a probe none of the setting.
        DisturbedError
            If other programs disturbed the measurement of these Records too much, and `anyway` is not set.
        """
        check_probe(probe_s, self.trust, has_matrix=not isinstance(A, Structure))
        A = A if isinstance(A, Structure) else Problem.of(A)
        lost = rounding(A, self.setting)
        if self.setting.threads == AUTO:
            return in_one_prediction([each.predict(A, probe_s=probe_s) for each in self._of_each_number(A)])
        self.question(A)
        start = perf_counter()
        basis, outcome = self._tried(A, Spending(UNLIMITED, probe_s) if probe_s else None)
        trials = outcome.trials if outcome else None
        structure = basis.structure(A)
        drift = self._drift(basis, is_measured=trials is None)
        prediction = basis.prediction(structure, drift, self._energy(A, basis))
        took = perf_counter() - start - (trials.used_s if trials else 0.0)
        notes = *prediction.notes, *(measured.sentence() for measured in (trials, lost) if measured)
        return replace(prediction, predict_s=took, notes=notes, trials=trials, rounding=lost)

    def plan(
        self, A: Any, *, products: int = 1000, objective: str = "time", probe_s: float | None = None
    ) -> Plan:
        """Find the best formats for a number of products with a matrix, conversion included.

        Parameters
        ----------
        A : sparse matrix
        products : int
            Number of products that will be done, at least 1.
        objective : str
            What to minimise over all products and the conversion: ``"time"``, ``"energy"``, or ``"edp"``,
            energy times time.
        probe_s : float, optional
            Seconds to measure for, whatever the gain, as in `predict`. By default, with this machine's own
            profile, candidates are built and timed if the expected gain over all products exceeds the cost of
            measuring them, within 5 % of the time of the products. Measurements for 24,000 products and more
            are kept, for scores and reports. The forecasts alone decide if `probe_s` is 0, for another
            machine, for few products, and without `drift_correction`.

        Returns
        -------
        Plan
            With `threads` ``"auto"``, the plan with the fewest threads that no other plan is forecast to beat
            by LEAST_GAIN; all plans are in its `thread_plans`.

        Raises
        ------
        InputError
            If `products` or an input of `predict` is invalid; if a plan as printed is requested for another
            objective than time, or for a model whose paper prints no plan.
        ProfileError, DisturbedError
            As in `predict`.
        """
        if products < 1:
            raise InputError(f"products {products}: expected at least 1; name how many you will do")
        check_probe(probe_s, self.trust)
        refuse_objective(objective)
        is_printed = self.trust.as_printed
        if is_printed and objective != "time":
            raise InputError(f"objective '{objective}' for a plan as printed: expected time; leave it out")
        planner = printed_planner(self.trust.time_model) if is_printed else None
        matrix = Problem.of(A)
        lost = rounding(matrix, self.setting)
        if self.setting.threads == AUTO:
            how: dict[str, Any] = {"products": products, "objective": objective, "probe_s": probe_s}
            return merge_plans([each.plan(matrix, **how) for each in self._of_each_number(matrix)])
        profile, target = self.question(matrix)
        if target.is_published:
            raise ProfileError(
                f"a plan for the published results {profile.name}: expected a profile that calibrate wrote, "
                f"with kernels of ours and times of conversions; name another one, or ask predict"
            )
        is_for_time = objective == "time" and not is_printed
        spending = Spending(UNLIMITED, probe_s) if probe_s else None
        if probe_s is None and self.trust.drift_correction and is_for_time:
            spending = Spending(products)
        basis, outcome = self._tried(matrix, spending)
        energy = self._energy(matrix, basis)
        if energy is None and objective != "time":
            raise without_joules(objective, profile)
        structure, tried = basis.structure(matrix), None
        if outcome and is_for_time:
            fastest = outcome.best(products)
            memory = memory_bytes(fastest.candidate, RowBlocks.of(structure))
            seconds = fastest.time_s, fastest.convert_s or 0.0
            tried = PlannedBlock(0, structure.rows - 1, fastest.candidate, *seconds, *memory)
        best = best_plan(basis, matrix, structure, Goal(products, objective, energy, planner, tried))
        trials = outcome.trials if outcome else None
        drift, notes = self._drift(basis, is_measured=trials is None)
        if drift.scales:
            known = basis.unused.structure(structure)
            for baseline in basis.model.forecast(known, [best.baseline.candidate]):
                best = drift.plan(best, baseline, profile.machine)
        best = replace(
            best,
            notes=(*best.notes, *basis.notes, *notes),
            trials=trials,
            rounding=lost,
            transferred_from=basis.transferred_from,
        )
        if is_local(profile.machine):
            best = within_memory(best)
        if matrix.order is None and may_pay(best, structure, profile.machine):
            again = self.changed(threads=target.threads)
            best = in_best_order(matrix, best, lambda other: again.plan(other, products=products))
        sentences = (measured.sentence() for measured in (best.trials, lost) if measured)
        return replace(best, notes=(*best.notes, *sentences))

    def choice(self, A: Any) -> Choice:
        """Return the candidates for a matrix on this machine, and the reasons against others."""
        machine, A = machine_of(self._device_here), A if isinstance(A, Structure) else Problem.of(A)
        rounding(A, self.setting)  # refuses
        target = self.setting.target(A, machine)
        counts = [target.threads]
        if self.setting.threads == AUTO:
            counts = thread_numbers(calibrated_profile(machine), target)
        structure = structure_of(A)
        choices = [whole_matrix(structure, replace(target, threads=count), machine) for count in counts]
        candidates = dict.fromkeys(candidate for choice in choices for candidate in choice.candidates)
        return Choice(tuple(candidates), choices[0].refused)

    def forecasts_at_hand(self, A: Any) -> Prediction | None:
        """Return the forecasts for this machine without calibrating it; None if there are none.

        Raises an InputError for the profile of another machine: its forecasts have no measurement here.
        """
        machine = machine_of(self._device_here)
        profile = self.profile or calibrated_profile(machine)
        require_own(profile.name, machine)
        if not model_records(profile, self.setting.target(A, machine)):
            return None
        try:
            prediction = Session(
                profile, replace(self.setting, device=self._device_here), self.trust
            ).predict(A)
        except DisturbedError:
            return None
        return None if prediction.transferred_from else prediction

    def compile(
        self,
        A: Any,
        plan: Plan | None = None,
        *,
        products: int = 1000,
        transpose: bool | Plan = False,
        adapt: bool = False,
    ) -> BlockOperator:
        """Build a SciPy LinearOperator for a matrix in the formats of a plan.

        ``op.update(A)`` converts another matrix of the same shape, such as one with new values, to the same
        formats. Values that were rounded are rounded again.

        The transpose of a symmetric matrix costs nothing. That of another matrix is planned and built like
        any matrix when ``op.T``, ``op.H``, ``op.rmatvec`` or ``op.rmatmat`` is first used; until then the
        operator keeps `A`, which must not change.

        Parameters
        ----------
        A : sparse matrix
        plan : Plan, optional
            Made by `plan`. Without one, a plan is made, and what was built while planning is not built again.
        products : int
            Number of products to plan for, without a plan.
        transpose : bool or Plan
            Whether to plan and build the transpose now, for the same number of products; or a plan for it, to
            build now. Without a plan, the transpose is planned by the profile of this machine.
        adapt : bool
            Whether to start with plain CSR, to try the candidates of a plan during the first products, and to
            keep the fastest. Conversions and trials happen within calls of the operator, once the previous
            products have paid for them. The operator keeps `A`, which must not change; its `describe` reports
            what was tried. Not with a `plan`, nor with `values`, nor on a GPU.

        Returns
        -------
        BlockOperator
            With `adapt` an AdaptingOperator. On a GPU a DeviceOperator: it accepts vectors on the GPU without
            copies, and queues all row blocks without waiting between them.

        Raises
        ------
        InputError
            If the plan is for another number of rows, for more threads than the machine has, or for another
            setting; if `adapt` is combined with a plan, `values`, or a device that does not compute on the
            host.
        DisturbedError
            As `plan`.
        DeviceError
            If the device of the plan cannot be found.
        """
        from sparsecast.api.executing import adapting, operator_of, select
        from sparsecast.operators.block_operator import BlockOperator

        if isinstance(plan, Profile):
            raise InputError(
                f"profile {plan.name} in place of a plan: expected a Plan; write profile=, or a session"
            )
        problem, setting = Problem.of(A), self.setting
        if adapt:
            if plan is not None or isinstance(transpose, Plan) or setting.values is not None:
                raise InputError("adapt with a plan or values: expected one of them; leave the others out")
            self.require_here()
            self.refuse_given("an operator that adapts", "vectors", "as_printed")
            if DEVICES.get(parse_device(self._device_here)[0]).operator_type() is not BlockOperator:
                raise InputError(
                    f"adapt on {setting.device}: expected a device that computes on the host; plan instead"
                )
            # Trials correct its forecasts, whatever disturbed the calibration.
            alike = self.changed(anyway=True)
            if setting.threads == AUTO:
                alike = alike.changed(threads=alike.plan(problem).threads)
            adapted = adapting(alike.basis(problem, transfers=False), problem)
            if transpose:
                adapted.transpose()
            return adapted
        plan = plan or self.plan(problem, products=products)
        first = plan.baseline.candidate
        vectors = None if setting.vectors == 1 else setting.vectors
        for name, planned in (
            (setting.threads, first.threads),
            (setting.dtype, first.dtype),
            (setting.values, plan.rounding and "float32"),
            (vectors, first.vectors),
        ):
            if name not in (None, AUTO, planned):
                what = f"{name} with a plan for {planned or 'values in full'}"
                raise InputError(f"{what}: expected the same; plan it so, or leave it out")
        select(setting.device, plan)
        return operator_of(problem, plan, transpose)

    def measure(
        self,
        A: Any,
        table: Prediction | Sequence[Forecast | Candidate] | None = None,
        *,
        name: str = "matrix",
        keeps: bool = True,
        meter: Meter | None = None,
    ) -> list[Record]:
        """Measure the product of a matrix here; each result is first compared with a reference result.

        Parameters
        ----------
        A : sparse matrix
        table : Prediction, or sequence of Forecast or Candidate, optional
            What to measure; by default every format that suits the matrix, in the setting of the session.
            If the session names no device, or one of another kind than the table, the current device of the
            table's kind is measured.
        name : str
            Name of the matrix in the Records.
        keeps : bool
            Whether the Records are kept in the data folder, for models to learn from and to be scored on.
        meter : Meter, optional
            Counter of joules, such as a `CommandMeter`; by default that of the device.

        Returns
        -------
        list of Record
            Fastest first. They include energies if a meter was found, which takes 0.1 s per candidate on a
            processor and two seconds on a GPU. With rounded values, the `error` includes that of the
            rounding.

        Raises
        ------
        InputError
            If the table was forecast for another machine, or for more threads than this one has, or if every
            Candidate had to be left out.
        WrongResultError
            If the result of a kernel is wrong.
        """
        from sparsecast.api.executing import measure_here
        from sparsecast.records import Forecast

        problem, device = Problem.of(A, name), self.setting.device
        self.require_here()
        self.refuse_given("a measurement", *UNMEASURED)
        if table is None:
            table = self.choice(problem).candidates
        candidates = [item.candidate if isinstance(item, Forecast) else item for item in table]
        kinds = {candidate.device for candidate in candidates}
        if device is not None and (not kinds or parse_device(device)[0] in kinds):
            machine_of(device)  # selects it
        if isinstance(table, Prediction):
            require_own(table.profile, DEVICES.get(max(kinds, default=PROCESSOR)).describe())
        records, _ = measure_here(problem, candidates, keeps=keeps, meter=meter)
        return records

    def evaluate(
        self,
        matrices: Sequence[Any],
        *,
        models: Sequence[str] | None = None,
        on_matrix: Callable[[str, Evaluation], None] | None = None,
        **collection: Unpack[CollectionOptions],
    ) -> Evaluation:
        """Forecast a collection of matrices with all models, and measure them on this machine.

        No model learns from a matrix that it is scored on, nor from one of its group, whatever the profile
        and the kept Records contain: the known groups are left out in turn, in FOLDS parts. A matrix or a
        model that cannot be used is skipped with its reason; an interrupted run returns what was done. At the
        end every fourth matrix, at most twelve, is measured once more: the difference of repeated
        measurements is the error of a perfect forecast.

        Parameters
        ----------
        matrices : sequence of paths, folders of matrix files, gallery specifications or sparse matrices
        models : sequence of str, optional
            Names of the models; all by default.
        on_matrix : callable, optional
            Called after each matrix with its name and its evaluation.
        **collection
            `keeps`, `resume`, `shard`, `transpose` and `on_progress`, as in `CollectionOptions`.

        Raises
        ------
        InputError
            If a folder has no matrix files, or there is no such shard.
        UnknownNameError
            If there is no such model.
        ProfileError
            If the journal of kept Records is damaged.
        StorageError
            If Records cannot be kept.
        """
        from sparsecast.api.evaluating import evaluated

        return evaluated(self, matrices, models, on_matrix, collection)

    def pagerank(self, A: Any, *, plan: Plan | None = None, **settings: Unpack[PageRankOptions]) -> PageRank:
        """Return the PageRank of the nodes of a graph, with products in the best format for their number.

        Parameters
        ----------
        A : sparse matrix of shape (nodes, nodes)
            Each non-zero a_ij is an edge i -> j of that weight; not negative.
        plan : Plan, optional
            For the transposed graph, as in `application_cost`. Without one, the first iterations use plain
            CSR. If the expected number of remaining iterations pays for a plan, it is made for these.
        **settings
            `damping`, `epsilon`, `most`, `on_iteration`, `personalization`, `dangling` and `start`, as in
            `PageRankOptions`.

        Raises
        ------
        InputError
            If A is no graph with non-negative weights, or a setting is invalid.
        """
        from sparsecast.api.applications import PageRankOptions, ranked

        refuse_unknown(PageRankOptions, settings)
        return ranked(self, A, plan, **settings)

    def cg(self, A: Any, b: Any, *, plan: Plan | None = None, **settings: Unpack[CgOptions]) -> Solution:
        """Solve A x = b by conjugate gradients, with products in the best format for their expected number.

        Parameters
        ----------
        A : sparse matrix of shape (rows, rows)
            Real, symmetric and positive definite.
        b : float array of shape (rows,)
        plan : Plan, optional
            Without one, it is made during the solve, as in `pagerank`.
        **settings
            `preconditioner`, `tolerance`, `most` and `on_iteration`, as in `CgOptions`.

        Raises
        ------
        InputError
            If A is not square, real and symmetric, or b has another shape, or a setting is invalid.
        """
        from sparsecast.api.applications import CgOptions, solved

        refuse_unknown(CgOptions, settings)
        return solved(self, A, b, plan, **settings)
