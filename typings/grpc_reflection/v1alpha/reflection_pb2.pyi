from typing import Any

from google.protobuf.message import Message

class ServerReflectionRequest(Message):
    def __init__(self, *, list_services: str = ..., file_containing_symbol: str = ...) -> None: ...

class ServerReflectionResponse(Message):
    list_services_response: Any
    file_descriptor_response: Any
