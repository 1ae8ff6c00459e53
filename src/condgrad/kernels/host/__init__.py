"""The kernels' twin for the host: one call moves every tensor."""
