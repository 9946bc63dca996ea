"""Doe (2026): a product takes a time for each row and one for each entry.

The paper prints no constant for the start of a product; here it is fitted too.
"""

#: What `import sparsecast` offers of this paper, with the module that has it.
FUNCTIONS = {"row_cost": "doe_2026.row_cost"}
