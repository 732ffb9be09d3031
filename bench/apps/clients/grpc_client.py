"""The checks of a gRPC client in Python. Each is a generator that yields after every operation that went well."""
import threading
import time

import grpc
from common import CA, SCHEME, main, same
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

PREFIX = "/apps.Echo/"
OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]


def channel(address, options=(), **more):
    address = address.replace("127.0.0.1", "localhost") if SCHEME == "https" else address
    options = [*OPTIONS, *options]
    if SCHEME == "https":
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(open(CA, "rb").read()), options, **more)
    return grpc.insecure_channel(address, options, **more)


def unary(address, seconds):
    """At least 1,500 calls on a connection, however long they take (some proxies end one after 1,000); metadata both ways."""
    call = channel(address).unary_unary(PREFIX + "Unary")
    number = 0
    while True:
        for _ in range(1500 if number == 0 else 1):
            answer, rpc = call.with_call(b"%d" % number, timeout=5, metadata=(("x-a-bin", b"\xff\0"), ("x-b", "c")))
            same(answer, b"%d" % number)
            same(dict(rpc.trailing_metadata()).get("x-detail-bin"), b"\0\1\2", "a binary trailer")
            number += 1
        yield


def unary_parallel(address, seconds):
    """Two hundred calls at once on one connection: more than the streams that a peer allows by default."""
    call = channel(address).unary_unary(PREFIX + "Unary")
    while True:
        for future in [call.future(b"x" * 100, timeout=10) for _ in range(200)]:
            same(future.result(), b"x" * 100)
        yield


def status(address, seconds):
    """An error arrives as it was sent: code, text in UTF-8, binary details."""
    call = channel(address).unary_unary(PREFIX + "Fail")
    while True:
        try:
            call(b"", timeout=5)
            raise AssertionError("no error")
        except grpc.RpcError as error:
            same(error.code(), grpc.StatusCode.FAILED_PRECONDITION, "code")
            same(error.details(), "nicht heute, ä 100%", "details")
            same(dict(error.trailing_metadata()).get("x-detail-bin"), b"\0\1\2", "a binary trailer")
        yield


def unknown(address, seconds):
    """A method that does not exist is UNIMPLEMENTED."""
    call = channel(address).unary_unary(PREFIX + "Nothing")
    while True:
        try:
            call(b"", timeout=5)
            raise AssertionError("no error")
        except grpc.RpcError as error:
            same(error.code(), grpc.StatusCode.UNIMPLEMENTED, "code")
        yield


def server_stream(address, seconds):
    call = channel(address).unary_stream(PREFIX + "ServerStream")
    while True:
        same([int(m) for m in call(b"1000", timeout=10)], list(range(1000)), "stream")
        yield


def client_stream(address, seconds):
    call = channel(address).stream_unary(PREFIX + "ClientStream")
    while True:
        same(call((b"x" * 1000 for _ in range(500)), timeout=10), b"500000", "sum")
        yield


def both(address, seconds):
    """Question and answer in turns on one stream."""
    call = channel(address).stream_stream(PREFIX + "Both")
    turn = threading.Semaphore(1)

    def questions():
        for i in range(200):
            turn.acquire(timeout=10)
            yield b"%d" % i

    while True:
        answers = []
        for answer in call(questions(), timeout=20):
            answers.append(int(answer))
            turn.release()
        same(answers, list(range(200)), "answers")
        turn = threading.Semaphore(1)
        yield


def large(address, seconds):
    """Eight MiB there and back."""
    call = channel(address).unary_unary(PREFIX + "Unary")
    body = bytes(range(256)) * (8 << 12)
    while True:
        same(len(call(body, timeout=20)), len(body), "length")
        yield


def compressed(address, seconds):
    call = channel(address, compression=grpc.Compression.Gzip).unary_unary(PREFIX + "Unary")
    while True:
        same(call(b"a" * 100000, timeout=10), b"a" * 100000)
        yield


def deadline(address, seconds):
    """The server learns the deadline; a call that is too slow ends by it at the client, and is given up at the server."""
    wire = channel(address)
    told, slow = wire.unary_unary(PREFIX + "Deadline"), wire.unary_unary(PREFIX + "Slow")
    counted = wire.unary_unary(PREFIX + "Counted")
    while True:
        left = float(told(b"", timeout=7))
        assert 5 < left <= 7.1, f"the server was told {left} s, not 7"
        before = int(counted(b"cancelled", timeout=5))
        begun = time.monotonic()
        try:
            slow(b"5", timeout=0.2)
            raise AssertionError("no error")
        except grpc.RpcError as error:
            same(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED, "code")
        assert time.monotonic() - begun < 1, "later than its deadline"
        await_count(counted, b"cancelled", before + 1)
        yield


def await_count(counted, what, wanted):
    end = time.monotonic() + 2
    while (now := int(counted(what, timeout=5))) < wanted:
        assert time.monotonic() < end, f"calls {what.decode()} at the server are {now} after 2 s, not {wanted}"
        time.sleep(0.02)


def cancel(address, seconds):
    """A client that leaves a call or a stream: the server learns it, and other calls on the connection go on."""
    wire = channel(address)
    slow, ticks = wire.unary_unary(PREFIX + "Slow"), wire.unary_stream(PREFIX + "Ticks")
    counted, echo = wire.unary_unary(PREFIX + "Counted"), wire.unary_unary(PREFIX + "Unary")
    while True:
        before = int(counted(b"cancelled", timeout=5))
        started = int(counted(b"started", timeout=5))
        future = slow.future(b"5", timeout=10)
        stream = ticks(b"", timeout=10)
        same(next(stream), b"0", "tick")
        await_count(counted, b"started", started + 2)
        future.cancel()
        stream.cancel()
        await_count(counted, b"cancelled", before + 2)
        same(echo(b"still here", timeout=5), b"still here")
        yield


def health(address, seconds):
    """Check, and Watch with changes as they happen."""
    stub = health_pb2_grpc.HealthStub(channel(address))
    request = health_pb2.HealthCheckRequest
    while True:
        same(stub.Check(request(service="apps.Echo"), timeout=5).status, 1, "status")
        try:
            stub.Check(request(service="unknown"), timeout=5)
            raise AssertionError("an unknown service has a state")
        except grpc.RpcError as error:
            same(error.code(), grpc.StatusCode.NOT_FOUND, "code")
        watch, seen = stub.Watch(request(service="flapping"), timeout=10), set()
        begun = time.monotonic()
        for change in watch:
            seen.add(change.status)
            if {1, 2} <= seen:
                break
        assert time.monotonic() - begun < 2, "changes come late"
        watch.cancel()
        yield


def reflection(address, seconds):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel(address))
    ask = reflection_pb2.ServerReflectionRequest
    while True:
        answers = list(stub.ServerReflectionInfo(iter([ask(list_services=""), ask(file_containing_symbol="apps.Echo")]), timeout=5))
        names = {s.name for s in answers[0].list_services_response.service}
        assert "apps.Echo" in names, f"services are {names}"
        assert answers[1].file_descriptor_response.file_descriptor_proto, "no description"
        yield


def subscription(address, seconds):
    """Asks once, keeps its side open, and listens; nothing comes for 35 s."""
    call = channel(address).stream_stream(PREFIX + "Subscribe")
    over = threading.Event()

    def once():
        yield b"35"
        over.wait()

    answers = call(once(), timeout=60)
    same(next(answers), b"subscribed")
    begun = time.monotonic()
    same(next(answers), b"news")
    over.set()
    yield
    return f"after {time.monotonic() - begun:.0f} s"


def stream_idle(address, seconds):
    """A stream of the server's that says nothing for 35 s, with pings of the client's each 10 s."""
    call = channel(address, [("grpc.keepalive_time_ms", 10000), ("grpc.keepalive_timeout_ms", 5000)]).unary_unary(PREFIX + "Slow")
    same(call(b"35", timeout=60), b"35")
    yield
    return "after 35 s"


main(globals())
