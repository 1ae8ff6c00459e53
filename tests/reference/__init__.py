"""The slow twins: every set and algorithm once more, in NumPy float64 and the paper's letters.

Nothing here imports the library or torch. The twins are written to be read beside the paper, one
tensor and one step at a time, and by other means than the library wherever there are other means,
so that the two can only agree by both being right.
"""
