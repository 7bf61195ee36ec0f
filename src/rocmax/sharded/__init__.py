"""Fits of data in parts: no process holds one number per row of all rows.

A *shard* holds some rows with their labels, weights and score vectors: chunks of a file on one machine, or the rows of
one worker of a cluster. The driver holds the weights, the cuts and histograms of scores. The score vectors of the
solvers are handles (:class:`~rocmax.sharded.driver.Scores`), so the solvers are those for data in memory.
"""
