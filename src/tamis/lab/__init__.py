"""The lab: measurements (`bench`) yield records, `results` stores them, `plots` draws them.

Each part works without the ones after it: measuring draws nothing, and plotting measures nothing.
`instruments` has the clocks and comparisons that measurements use.
"""
