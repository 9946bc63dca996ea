"""Charts as Vega-Lite specifications: one for the pages, for the files of --figure and for notebooks."""
