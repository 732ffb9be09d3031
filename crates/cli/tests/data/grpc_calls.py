"""A gRPC server and its client: `grpc_calls.py serve CERT KEY` prints its ports in cleartext and with TLS,
`grpc_calls.py ask ADDR [CA]` makes calls of all four kinds and says `ok`. No protoc: messages are bytes."""

import queue
import sys
from concurrent import futures

import grpc

ANY_SIZE = [("grpc.max_receive_message_length", -1)]


def unary(request, context):
    if request == b"fail":
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "as asked")
    while request == b"slow" and context.is_active():
        pass
    context.set_trailing_metadata((("x-trailer", "1"),))
    return b"got " + request


class Service(grpc.GenericRpcHandler):
    def service(self, details):
        return {
            "/t.T/Unary": grpc.unary_unary_rpc_method_handler(unary),
            "/t.T/Down": grpc.unary_stream_rpc_method_handler(lambda _, c: (b"%d" % i for i in range(5))),
            "/t.T/Up": grpc.stream_unary_rpc_method_handler(lambda requests, _: b",".join(requests)),
            "/t.T/Both": grpc.stream_stream_rpc_method_handler(lambda rs, _: (b"got " + r for r in rs)),
        }.get(details.method)


def serve(cert, key):
    with open(cert, "rb") as c, open(key, "rb") as k:
        pair = (k.read(), c.read())
    server = grpc.server(futures.ThreadPoolExecutor(8), options=ANY_SIZE)
    server.add_generic_rpc_handlers((Service(),))
    clear = server.add_insecure_port("127.0.0.1:0")
    secure = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    print(clear, secure, flush=True)
    server.wait_for_termination()


def fails_with(code, call):
    try:
        call()
    except grpc.RpcError as e:
        assert e.code() == code, e
        return
    raise AssertionError(f"it does not end with {code}")


def ask(addr, ca=None):
    if ca is None:
        channel = grpc.insecure_channel(addr, ANY_SIZE)
    else:
        with open(ca, "rb") as file:
            trusts = grpc.ssl_channel_credentials(file.read())
        channel = grpc.secure_channel(addr, trusts, ANY_SIZE + [("grpc.ssl_target_name_override", "a.test")])
    answer, call = channel.unary_unary("/t.T/Unary").with_call(b"x", timeout=20)
    assert answer == b"got x" and ("x-trailer", "1") in [tuple(pair) for pair in call.trailing_metadata()]
    large = b"y" * 3_000_000
    assert channel.unary_unary("/t.T/Unary")(large, timeout=20) == b"got " + large
    assert list(channel.unary_stream("/t.T/Down")(b"", timeout=20)) == [b"0", b"1", b"2", b"3", b"4"]
    assert channel.stream_unary("/t.T/Up")(iter([b"a", b"b"]), timeout=20) == b"a,b"
    requests = queue.Queue()
    answers = channel.stream_stream("/t.T/Both")(iter(requests.get, None), timeout=20)
    for message in (b"1", b"2"):
        # Each is answered before the next is sent.
        requests.put(message)
        assert next(answers) == b"got " + message
    requests.put(None)
    assert list(answers) == []
    call = channel.unary_unary("/t.T/Unary")
    fails_with(grpc.StatusCode.FAILED_PRECONDITION, lambda: call(b"fail", timeout=20))
    fails_with(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: call(b"slow", timeout=0.3))
    fails_with(grpc.StatusCode.UNIMPLEMENTED, lambda: channel.unary_unary("/t.T/Other")(b"", timeout=20))
    print("ok", flush=True)


{"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:])
