"""The broker: publish, subscribe, renew, cancel, and the order of it all.

One service layer under every interface. The log is the truth; everything else here is derived from
it, or holds what failed.
"""
