"""Names and their implementations, found from the files of a package, of papers and of installed plug-ins.

A registry's known names are the module names of its package, so a newcomer adds a file and nothing
else; a module is imported only when its name is asked for. A paper adds members by the files of its folder
that is called as the package: `papers/guo_2014/models` adds to `sparsecast.models`. A distribution of
somebody else adds members by entry points whose group is the name of that package:
``[project.entry-points."sparsecast.formats"]``. The name of the entry point is that of the member, its value
the module that registers it. A whole paper is one entry point of the group ``"sparsecast.papers"``, whose
value is a package with folders such as `models`. No member takes the place of another: a name that is taken
is an error.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable
from functools import cached_property
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
    found = {f"{_PAPERS}.{name}": folder / name for name in names}
    for point in metadata.entry_points(group=_PAPERS):
        spec = importlib.util.find_spec(point.value)
        if spec is None or not spec.submodule_search_locations:
            raise PluginError(
                f"paper '{point.name}': expected a package {point.value}, found none; install the "
                f"distribution anew, or remove it"
            )
        found[point.value] = Path(spec.submodule_search_locations[0])
    return found


class Registry(Generic[T]):
    """The implementations of one kind of thing, by name.

    Parameters
    ----------
    kind : str
        What is registered, for messages: ``"format"``, ``"model"``.
    package : str
        Dotted name of the package whose modules register one implementation each, under the
        module's own name.
    helpers : tuple of str
        Modules of the package that register nothing, such as a common base class.
    separator : str
        Stands in names for the underscore of modules.
    """

    def __init__(self, kind: str, package: str, helpers: tuple[str, ...] = (), separator: str = "_") -> None:
        self.kind = kind
        self._package = package
        self._helpers = helpers
        self._separator = separator
        self._members: dict[str, T] = {}

    def names(self) -> list[str]:
        """Return every known name, sorted, without importing the implementations."""
        return sorted(set(self._modules) | set(self._members) | set(self._plugins))

    @cached_property
    def _modules(self) -> dict[str, str]:
        """The module of each member of the package and of the papers, by the name of the member."""
        package = importlib.import_module(self._package)
        leaf = self._package.rpartition(".")[2]
        folders = {self._package: list(package.__path__)}
        folders |= {f"{paper}.{leaf}": [str(path / leaf)] for paper, path in papers().items()}
        modules: dict[str, str] = {}
        for folder, paths in folders.items():
            for info in pkgutil.iter_modules(paths):
                if info.name not in self._helpers:
                    self._enter(modules, info.name.replace("_", self._separator), f"{folder}.{info.name}")
        return modules

    def _enter(self, owners: dict[str, str], name: str, owner: str) -> None:
        """Enter a member with what brings it; the same one may lie twice on the path."""
        if owners.setdefault(name, owner) != owner:
            raise PluginError(
                f"{self.kind} '{name}' of {owner}: expected a name that is not taken, but {owners[name]} has "
                f"it; remove that distribution, or have it renamed"
            )

    @cached_property
    def _plugins(self) -> dict[str, str]:
        """The module of each plug-in, by the name of the member."""
        owners = dict(self._modules)
        plugins: dict[str, str] = {}
        for point in metadata.entry_points(group=self._package):
            distribution = point.dist.name if point.dist else "a distribution"
            self._enter(owners, point.name, f"{distribution} ({point.value})")
            plugins[point.name] = point.value
        return plugins

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
        """Raise an UnknownNameError for the first of some names that is not known; import nothing."""
        known = self.names()
        for name in names:
            if name not in known:
                raise UnknownNameError(
                    f"{self.kind} '{name}' is unknown: known are {', '.join(known)}; "
                    f"{remedy_for(name, known, 'name one')}"
                )

    def get(self, name: str) -> T:
        """Return the implementation called `name`, importing its module when needed.

        Raises
        ------
        UnknownNameError
            If there is none; the message lists the known names.
        PluginError
            If a plug-in cannot be imported, or registers something else.
        """
        if name not in self._members:
            self.require([name])
            if name in self._plugins:
                self._import_plugin(name, self._plugins[name])
            else:
                importlib.import_module(self._modules[name])
        return self._members[name]

    def _import_plugin(self, name: str, module: str) -> None:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise PluginError(
                f"{self.kind} '{name}': expected its module {module}, which cannot be imported ({error}); "
                f"install the distribution anew, or remove it"
            ) from error
        if name not in self._members:
            raise PluginError(
                f"{self.kind} '{name}': expected {module} to register that name, it did not; have the "
                f"distribution corrected, or remove it"
            )
