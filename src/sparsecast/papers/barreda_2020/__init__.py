"""Barreda, Dolz and Castano (2020): networks that forecast the time and energy of blocks of 250 entries.

`label` measures blocks, `network_training.py` trains on the labels, `blocks` forecasts. The head of
`networks/architectures.py` says what differs from the print, and why.
"""
