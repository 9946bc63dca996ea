"""Names and their implementations, found from the files of a package, of papers and of installed plug-ins.

The names of a registry are the modules of its package, so a new member is a new file; a module is imported
when its name is needed. A paper adds the files of its folder of the same name: `papers/guo_2014/models` adds
to `sparsecast.models`. A module of a paper that registers several members is named in `[members]` of its
`paper.toml`, by member: ``models = {doe = "lines"}``. Other distributions add members by entry points whose
group is the name of the package, ``[project.entry-points."sparsecast.formats"]``, with the name of the member
and the module that registers it. A whole paper is an entry point of the group ``"sparsecast.papers"``, whose
value is a package with such folders or with a `paper.toml`. Two members of one name are an error.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Generic, TypeVar

from sparsecast.errors import PluginError, UnknownNameError, remedy_for

T = TypeVar("T")

#: The package of the papers: each folder is one.
_PAPERS = "sparsecast.papers"


def papers() -> dict[str, Path]:
    """Return the folder of each paper by the dotted name of its package, without importing it."""
    folder = Path(__file__).parents[1] / "papers"
    names = (info.name for info in pkgutil.iter_modules([str(folder)]) if info.ispkg)
    folders = {f"{_PAPERS}.{name}": folder / name for name in names}
    for point in metadata.entry_points(group=_PAPERS):
        spec = importlib.util.find_spec(point.value)
        if spec is None or not spec.submodule_search_locations:
            raise PluginError(
                f"paper '{point.name}': expected a package {point.value}, found none; install the "
                f"distribution anew, or remove it"
            )
        folders[point.value] = Path(spec.submodule_search_locations[0])
    return folders


@cache
def _named_members(paper: Path) -> dict[str, dict[str, str]]:
    """Return the members that a paper names in its file, each with its module, by the kind of member."""
    file = paper / "paper.toml"
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        members: dict[str, dict[str, str]] = tomllib.loads(text).get("members", {})
    except ValueError as error:
        raise PluginError(
            f"{file}: expected TOML ({error}); have the distribution corrected, or remove it"
        ) from error
    return members


class Registry(Generic[T]):
    """The implementations of one kind, by name.

    `kind` names a member in messages, such as ``"format"``. Each module of `package` registers one
    implementation, under the name of the module with `separator` for its underscores; the `helpers`, such as
    a common base class, register nothing. `unlisted` returns a member that `get` knows by name and `names`
    does not list, or None.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        helpers: tuple[str, ...] = (),
        separator: str = "_",
        unlisted: Callable[[str], T | None] = lambda name: None,
    ) -> None:
        self.kind = kind
        self._package = package
        self._helpers = helpers
        self._separator = separator
        self._unlisted = unlisted
        self._members: dict[str, T] = {}
        self._plugins: set[str] = set()  # names of other distributions

    def names(self) -> list[str]:
        """Return every known name, sorted, without importing the implementations."""
        return sorted(self._modules.keys() | self._members.keys())

    def __contains__(self, name: object) -> bool:
        """Tell whether a name is known, without importing its implementation."""
        return name in self._members or name in self._modules

    @cached_property
    def _modules(self) -> dict[str, str]:
        """The module of each member, by its name."""
        owners: dict[str, str] = {}
        modules: dict[str, str] = {}
        for name, module, owner in self._found():
            if owners.setdefault(name, owner) != owner:  # the same one may be twice on the path
                raise PluginError(
                    f"{self.kind} '{name}' of {owner}: expected a name that is not taken, but {owners[name]} "
                    f"has it; remove that distribution, or have it renamed"
                )
            modules[name] = module
        return modules

    def _found(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, module and owner of each member: of the package, of papers, of other distributions."""
        leaf = self._package.rpartition(".")[2]
        yield from self._files(self._package, importlib.import_module(self._package).__path__)
        for paper, path in papers().items():
            yield from self._files(f"{paper}.{leaf}", [str(path / leaf)])
            for name, module in _named_members(path).get(leaf, {}).items():
                yield name, f"{paper}.{module}", f"{paper}.{module}"
        for point in metadata.entry_points(group=self._package):
            self._plugins.add(point.name)
            distribution = point.dist.name if point.dist else "a distribution"
            yield point.name, point.value, f"{distribution} ({point.value})"

    def _files(self, folder: str, paths: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        for info in pkgutil.iter_modules(paths):
            if info.name not in self._helpers:
                module = f"{folder}.{info.name}"
                yield info.name.replace("_", self._separator), module, module

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that enters an implementation under `name`."""

        def enter(implementation: T) -> T:
            if name in self._members:
                raise ValueError(
                    f"{self.kind} '{name}' is registered twice: by {self._members[name]!r} "
                    f"and {implementation!r}; rename one of them"
                )
            self._members[name] = implementation
            return implementation

        return enter

    def require(self, names: Iterable[str]) -> None:
        """Raise an UnknownNameError for the first unknown name; import nothing."""
        for name in names:
            if name not in self:
                members = self.names()
                raise UnknownNameError(
                    f"{self.kind} '{name}' is unknown: known are {', '.join(members)}; "
                    f"{remedy_for(name, members, 'name one')}"
                )

    def get(self, name: str) -> T:
        """Return the implementation called `name`, importing its module when needed."""
        if name not in self._members:
            if name not in self and (found := self._unlisted(name)) is not None:
                return found
            self.require([name])
            module = self._modules[name]
            try:
                importlib.import_module(module)
            except ImportError as error:
                if name not in self._plugins:
                    raise
                raise PluginError(
                    f"{self.kind} '{name}': expected its module {module}, which cannot be imported "
                    f"({error}); install the distribution anew, or remove it"
                ) from error
            if name not in self._members:
                raise PluginError(
                    f"{self.kind} '{name}': expected {module} to register that name, it did not; have the "
                    f"distribution corrected, or remove it"
                )
        return self._members[name]
