"""Gahvari, Hoemmen, Demmel and Yelick (2007): an SpMV benchmark in five minutes from synthetic matrices.

The heads of `search_space.py`, `estimator.py` and `summary.py` say what differs from the print, and why.
"""

#: What `import sparsecast` offers of this paper, with the module that has it.
FUNCTIONS = {"bench": "sparsecast.papers.gahvari_2007.rating"}
