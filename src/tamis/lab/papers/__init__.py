"""The experiments of the five papers: a folder for each paper, a file for each figure."""
