"""Residuals: the parts of conditions that are verified on candidates, not indexed."""
