"""The model of Wang, Gu and Li (2017) with binomial row lengths."""

from __future__ import annotations

from typing import ClassVar

from sparsecast.models import MODELS
from sparsecast.papers.wang_2017.row_length_model import WangModel


@MODELS.register("wang-binomial")
class WangBinomial(WangModel):
    """Fitted to matrices with binomial row lengths."""

    name: ClassVar[str] = "wang-binomial"
    lengths: ClassVar[str] = "binomial"
