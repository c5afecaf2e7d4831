"""Experiments of the papers: what they measure, what they claim, and how they are run and kept."""
