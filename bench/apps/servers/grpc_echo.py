"""A gRPC server in Python with every kind of call, health and reflection; bytes in and out, so that nothing is generated."""
import sys
import threading
import time
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

SERVICE = "apps.Echo"
lock = threading.Lock()
count = {"started": 0, "cancelled": 0}


def note(what):
    with lock:
        count[what] += 1


def end_of(context):
    """An event that is set once the call has ended, for whatever reason."""
    over = threading.Event()
    if not context.add_callback(over.set):
        over.set()
    note("started")
    return over


def describe():
    """The service's description, for reflection."""
    file = descriptor_pb2.FileDescriptorProto(name="apps.proto", package="apps", syntax="proto3")
    file.message_type.add(name="Text")
    service = file.service.add(name="Echo")
    service.method.add(name="Unary", input_type=".apps.Text", output_type=".apps.Text")
    descriptor_pool.Default().Add(file) if hasattr(descriptor_pool.Default(), "Add") else \
        descriptor_pool.Default().AddSerializedFile(file.SerializeToString())


def unary(request, context):
    context.set_trailing_metadata((("x-served", "yes"), ("x-detail-bin", b"\0\1\2")))
    return request


def fail(request, context):
    context.set_trailing_metadata((("x-detail-bin", b"\0\1\2"),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "nicht heute, ä 100%")


def slow(request, context):
    """Works for the seconds in the request, unless the client leaves first."""
    over = end_of(context)
    if over.wait(float(request)):
        note("cancelled")
    return request


def deadline(request, context):
    """Says how much time the client has given."""
    left = context.time_remaining()
    return b"none" if left is None else str(left).encode()


def counted(request, context):
    return str(count[request.decode()]).encode()


def server_stream(request, context):
    for i in range(int(request)):
        yield b"%d" % i


def client_stream(requests, context):
    return b"%d" % sum(len(r) for r in requests)


def both(requests, context):
    for request in requests:
        yield request


def ticks(request, context):
    """A message each tenth of a second until the client leaves."""
    over = end_of(context)
    number = 0
    while not over.wait(0.1):
        yield b"%d" % number
        number += 1
    note("cancelled")


def subscribe(requests, context):
    """The client asks once, keeps its side open, and hears something after the seconds that it named."""
    wanted = next(requests)
    yield b"subscribed"
    over = end_of(context)
    if not over.wait(float(wanted)):
        yield b"news"


def main():
    port = sys.argv[1]
    u, s, c, b = (grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler,
                  grpc.stream_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler)
    server = grpc.server(futures.ThreadPoolExecutor(64), options=[
        ("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20),
        ("grpc.http2.min_ping_interval_without_data_ms", 1000), ("grpc.keepalive_permit_without_calls", 1)])
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {
        "Unary": u(unary), "Fail": u(fail), "Slow": u(slow), "Deadline": u(deadline), "Counted": u(counted),
        "ServerStream": s(server_stream), "Ticks": s(ticks), "ClientStream": c(client_stream), "Both": b(both),
        "Subscribe": b(subscribe)})])
    checks = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    checks.set("", health_pb2.HealthCheckResponse.SERVING)
    checks.set("apps.Echo", health_pb2.HealthCheckResponse.SERVING)
    describe()
    reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)

    def flap():
        """Health changes twice a second, for those who watch it."""
        states = [health_pb2.HealthCheckResponse.NOT_SERVING, health_pb2.HealthCheckResponse.SERVING]
        while True:
            for state in states:
                time.sleep(0.25)
                checks.set("flapping", state)

    threading.Thread(target=flap, daemon=True).start()
    if len(sys.argv) > 2 and sys.argv[2] == "tls":
        import os
        key, cert = (open(os.environ[n], "rb").read() for n in ["KEY", "CERT"])
        server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([(key, cert)]))
    else:
        server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


main()
