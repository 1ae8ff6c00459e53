"""S. Pokutta, C. Spiegel, M. Zimmer, "Deep Neural Network Training with Frank-Wolfe" (2020)."""
