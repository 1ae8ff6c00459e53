"""The laboratory: the paper's figures and tables from real data, in one command."""
