"""Gahvari, Hoemmen, Demmel and Yelick (2007): an SpMV benchmark in five minutes from synthetic matrices.

What differs from the print, and why:

- Dimensions that the time limit cuts are refilled by how the speed of the series that were measured there
  changes; the paper leaves them out, and the median then leans towards small problems (`summary.py`).
  `bench` shows the medians as printed too.
- The estimator is asked before every dimension, with the trials of the one before. The paper asks it once,
  with trials at threshold dimensions that it leaves open how to find (`search_space.py`).
- Symmetric matrices of which one triangle is stored are added; the paper leaves them to future work.
- The range of dimensions grows beyond 2**20 until a problem no longer fits in the last cache.
- Twins: next to the paper's there is one of ours, made from the whole structure of a matrix.
"""

#: What `import sparsecast` offers of this paper, with the module that has it.
FUNCTIONS = {"bench": "sparsecast.papers.gahvari_2007.suite"}
