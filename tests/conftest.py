"""Settings of every test: one thread, and Hypothesis without chance, deadline or memory."""

import torch
from hypothesis import settings

torch.set_num_threads(1)

settings.register_profile("condgrad", derandomize=True, database=None, deadline=None)
settings.load_profile("condgrad")
