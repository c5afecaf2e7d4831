"""A line of an error of Spark, whose own text is pages of Java, Python or gRPC."""

from __future__ import annotations

import re

_CALL = re.compile(r'RPC that terminated with:\s+status = StatusCode\.(\w+)\s+details = "(.*?)"?\n')
_GONE = "the Spark Connect server does not answer any more"
_STRANGER = re.compile(r"No module named 'tamis|Failed to find the data source: tamis")
_NOT_THERE = (
    "the workers do not have tamis; install it in the Python that they run, which PYSPARK_PYTHON "
    "names, on all machines, and where a Connect server runs"
)
_FULL = "No space left on device"
_NO_ROOM = (
    "no space is left on the device where Spark has files of its own: a stream's checkpoint, or "
    "the folder that SPARK_LOCAL_DIRS names, /tmp by default"
)


def error_text(why: BaseException) -> str:
    """The last line of the Python error inside, or the first of all.

    >>> error_text(ValueError("[STREAM_FAILED] Query terminated\\n\\tat org.apache.spark.Job.run"))
    '[STREAM_FAILED] Query terminated'
    >>> error_text(ValueError("job\\nTraceback (most recent call last):\\n  File \\"a.py\\", line 1"
    ...     ", in f\\ntamis.errors.StoreError: log: is damaged\\n\\n\\tat org.apache.Job.run"))
    'log: is damaged'
    >>> error_text(ValueError("<_Rendezvous of RPC that terminated with:\\n"
    ...     '\\tstatus = StatusCode.UNAVAILABLE\\n\\tdetails = "failed to connect"\\n>'))
    'the Spark Connect server does not answer any more'
    """
    text = str(why)
    call = _CALL.search(text)
    if call is not None:
        return _GONE if call[1] == "UNAVAILABLE" else call[2]
    if _STRANGER.search(text):
        return _NOT_THERE
    lines = [line for line in text.splitlines() if not line.startswith("An error occurred")]
    for at, line in enumerate(lines):
        if "Traceback (most recent call last)" in line:
            after = (each for each in lines[at + 1 :] if each and not each.startswith((" ", "\t")))
            found = next(after, "")
            kind, colon, said = found.partition(": ")
            return said if colon and kind.startswith("tamis.") else found
    if _FULL in text:
        return _NO_ROOM
    first = next((line for line in lines if line.strip()), type(why).__name__)
    return first.strip().removeprefix(": ")
