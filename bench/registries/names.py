"""DNS: a small name server of this bench, which answers for some names by UDP and, where an answer is cut, by TCP."""

import socket
import struct
import threading

from registry import Registry

ZONE = "bench"
TTL_S = 1
A, SOA, OPT = 1, 6, 41
MOST_UDP = 1232


class Names(Registry):
    """The addresses of all names in the zone that begin with `app`."""

    label = "dns (server of the bench)"
    # What fits into 64 KiB.
    most = 4000
    ci_s = 50

    def __init__(self, site):
        super().__init__(site)
        self.port = site.free_port()
        self.hold_s = 1 if site.args.ci else 2
        # A member that is missing goes when its last answer has ended and `hold` is over.
        self.bound_s = TTL_S + self.hold_s + 1.5
        self.hosts, self.sockets = [], []

    def fleet(self, name="app"):
        more = f'port={self.member_port}, server="127.0.0.1:{self.port}", hold={self.hold_s}*s'
        return f'find.dns("{name}.{ZONE}", lambda: server("app"), {more})'

    def start(self):
        self.hosts = []
        tcp = socket.create_server(("127.0.0.1", self.port))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", self.port))
        self.sockets = [tcp, udp]
        threading.Thread(target=self.serve_udp, args=(udp,), daemon=True).start()
        threading.Thread(target=self.serve_tcp, args=(tcp,), daemon=True).start()

    def stop(self):
        for held in self.sockets:
            try:
                held.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            held.close()

    def set(self, hosts):
        self.hosts = sorted(hosts)

    def serve_udp(self, udp):
        while True:
            try:
                question, sender = udp.recvfrom(4096)
                udp.sendto(self.answer(question, is_tcp=False), sender)
            except (struct.error, IndexError):
                continue
            except OSError:
                return

    def serve_tcp(self, tcp):
        while True:
            try:
                connection = tcp.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve_connection, args=(connection,), daemon=True).start()

    def serve_connection(self, connection):
        self.sockets.append(connection)
        with connection, connection.makefile("rwb") as stream:
            try:
                while length := stream.read(2):
                    answer = self.answer(stream.read(*struct.unpack(">H", length)), is_tcp=True)
                    stream.write(struct.pack(">H", len(answer)) + answer)
                    stream.flush()
            except (OSError, ValueError, struct.error, IndexError):
                pass

    def answer(self, question, is_tcp):
        number, flags, _, _, _, more = struct.unpack(">HHHHHH", question[:12])
        at, labels = 12, []
        while question[at]:
            labels.append(question[at + 1 : at + 1 + question[at]].decode("ascii", "replace").lower())
            at += 1 + question[at]
        kind = struct.unpack(">H", question[at + 1 : at + 3])[0]
        asked, rest = question[12 : at + 5], question[at + 5 :]
        has_opt = more > 0 and rest[:3] == b"\0" + struct.pack(">H", OPT)
        most = 65535 if is_tcp else min(MOST_UDP, max(512, struct.unpack(">H", rest[3:5])[0])) if has_opt else 512
        is_name = labels[0].startswith("app") and labels[1:] == [ZONE] and self.hosts
        records = []
        if is_name and kind == A:
            records = [record(b"\xc0\x0c", A, socket.inet_aton(host)) for host in self.hosts]
        # Where there is no record, how long that may be believed.
        denial = [] if records else [record(b"\0", SOA, b"\0\0" + struct.pack(">IIIII", 1, 60, 60, 60, TTL_S))]
        extra = b"\0" + struct.pack(">HHIH", OPT, MOST_UDP, 0, 0) if has_opt else b""
        room = most - 12 - len(asked) - len(extra)
        fits = sum(map(len, records)) <= room
        if not fits:
            records = records[: room // len(records[0])]
        # An answer, by authority, with recursion if it was desired; cut or not; 3: there is no such name.
        flags = 0x8400 | (flags & 0x0100) | (0 if fits else 0x0200) | (0 if is_name else 3)
        head = struct.pack(">HHHHHH", number, flags, 1, len(records), len(denial), 1 if has_opt else 0)
        return head + asked + b"".join(records + denial) + extra


def record(name, kind, data):
    return name + struct.pack(">HHIH", kind, 1, TTL_S, len(data)) + data
