"""Default settings of applications, in a file that the command line can read for its help."""

#: Of PageRank: as Barreda et al. (2020), Algorithm 2.
DAMPING, EPSILON = 0.85, 1e-6

#: Of conjugate gradients: the relative residual.
TOLERANCE = 1e-8
