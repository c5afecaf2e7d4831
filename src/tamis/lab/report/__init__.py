"""The report of the lab: figures, verdicts and commands on one page."""
