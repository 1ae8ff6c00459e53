"""Triton kernels: importing this room needs Triton."""
