from typing import ClassVar

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

DESCRIPTOR: FileDescriptor

class HealthCheckRequest(Message):
    def __init__(self, service: str = ...) -> None: ...

class HealthCheckResponse(Message):
    SERVING: ClassVar[int]
    NOT_SERVING: ClassVar[int]
    status: int
