"""Barreda, Dolz and Castano (2020): networks that forecast the time and energy of blocks of 250 entries.

M. Barreda, M. F. Dolz, M. A. Castano, "Convolutional neural nets for estimating the run time and energy
consumption of the sparse matrix-vector product" (2020). `label` measures blocks, `train` trains networks on
the labels, `blocks` forecasts. `paper barreda-2020` does all of it for the paper's sixteen networks.

What differs from the print, and why:

- Labels come from a clock of seconds. The printed times go as 1/f**2 with the frequency f (Table 1), as
  counts of a counter of constant rate would that are divided by the set frequency.
- Next to the paper's labels, of a block that is repeated in place, there are those of a block within a
  product: only their sums are the times of products. A block is repeated 200 times, not 10,000, and for a
  meter as long as that needs.
- A matrix has floor(nnz / 250) blocks; the printed ceiling would need more entries than there are.
- Whole groups of matrices are learned from, validate, or test; in the paper's split, which is there too,
  relatives of a matrix stand on both sides.
- PyTorch and Optuna take the place of Keras and Hyperas. The bias of the output begins at the mean of the
  labels, which are far from 0.
- The model `blocks` (boosted trees) and the network SEEING_ROWS are ours. They see the ends of rows, too.
- Without a counter, `--meter modelled` gives joules by the power of the paper's core, and lower frequencies
  are modelled, too: all answers say so.
- In PageRank all loops have the power of the product (equation 4: that of each loop's intensity, measured).
"""
