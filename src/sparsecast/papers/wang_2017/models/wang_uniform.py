"""The model of Wang, Gu and Li (2017) with uniform row lengths."""

from __future__ import annotations

from typing import ClassVar

from sparsecast.models import MODELS
from sparsecast.papers.wang_2017.row_length_model import WangModel


@MODELS.register("wang-uniform")
class WangUniform(WangModel):
    """Fitted to matrices with uniform row lengths."""

    name: ClassVar[str] = "wang-uniform"
    lengths: ClassVar[str] = "uniform"
