"""The functions of ``import sparsecast``, and those behind the command line: `__init__.pyi` lists them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
