from collections.abc import Iterable

import grpc.aio

SERVICE_NAME: str

def enable_server_reflection(service_names: Iterable[str], server: grpc.aio.Server) -> None: ...
