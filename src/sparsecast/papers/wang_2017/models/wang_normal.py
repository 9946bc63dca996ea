"""The model of Wang, Gu and Li (2017) with normal row lengths."""

from sparsecast.papers.wang_2017.row_length_model import register

register("normal")
