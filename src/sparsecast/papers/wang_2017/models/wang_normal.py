"""The model of Wang, Gu and Li (2017) with normal row lengths."""

from __future__ import annotations

from typing import ClassVar

from sparsecast.models import MODELS
from sparsecast.papers.wang_2017.row_length_model import WangModel


@MODELS.register("wang-normal")
class WangNormal(WangModel):
    """Fitted to matrices with normal row lengths."""

    name: ClassVar[str] = "wang-normal"
    lengths: ClassVar[str] = "normal"
