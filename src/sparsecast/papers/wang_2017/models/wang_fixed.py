"""The baseline of Wang, Gu and Li (2017): the model of Guo and Wang (2012) for the same kernels."""

from __future__ import annotations

from typing import ClassVar

from sparsecast.models import MODELS
from sparsecast.papers.wang_2017.row_length_model import WangModel


@MODELS.register("wang-fixed")
class WangFixed(WangModel):
    """Fitted to matrices with rows of one length: reference [16] of the paper, which it compares with."""

    name: ClassVar[str] = "wang-fixed"
    lengths: ClassVar[str] = "fixed"
