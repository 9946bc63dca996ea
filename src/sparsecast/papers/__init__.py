"""Five papers, one folder for each: its models, benchmark matrices, commands and experiment.

A paper is found as a plug-in is, by the folders that it has: a file `models/NAME.py` registers a model, one
in `suites/` benchmark matrices, in `families/` a family of matrices, in `features/` a feature group, in
`clusters/` a model of ranks, in `commands/` a command. No paper imports another, and nothing outside this
package imports one.
"""
