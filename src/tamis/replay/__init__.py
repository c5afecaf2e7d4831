"""Reading a store back: live subscriptions over a version, events, parts and manifests.

It knows no Spark: the stream and the service share it.
"""
