from grpc_health.v1 import _async as _async

aio = _async
SERVICE_NAME: str
