"""Programs that do their worst at a door. Each takes the path of the socket and that of the project's file. They are
text: an attacker is a process of its own."""

from __future__ import annotations

CONNECT = """
def door():
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    return one
def swallow(one):
    while one.recv(1 << 16):
        pass
def begin(work, *given):
    threading.Thread(target=work, args=given, daemon=True).start()
def line(method, **params):
    params["project"] = sys.argv[2]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\\n"
"""

THOUSANDS = """
held = []
while True:
    held.append(door())
    del held[:-2000]
"""

COME_AND_GO = """
while True:
    door().close()
"""

HALVES = """
while True:
    one = door()
    one.sendall(b'{"jsonrpc":"2.0","id":1,"meth')
    one.close()
"""

ENDLESS = """
one = door()
while True:
    one.sendall(b"x" * 65536)
"""

TINY = """
one = door()
begin(swallow, one)
while True:
    one.sendall(b"{}\\n" * 10000)
"""

DEAF = """
one = door()
while True:
    one.sendall(line("whoami") * 1000)
"""

FULL = """
one = door()
begin(swallow, one)
data = b"[" + b"{}," * 300000 + b"1]\\n"
while True:
    one.sendall(data)
"""

MANY_ASK = """
def ask():
    one = door()
    answers = one.makefile("rb")
    while True:
        one.sendall(line("tree"))
        answers.readline()
for _ in range(50):
    begin(ask)
threading.Event().wait()
"""

TWO_GIGABYTES = """
one = door()
piece = b"x" * (1 << 20)
for _ in range(2048):
    one.sendall(piece)
one.sendall(b"\\n" + line("status"))
answers = one.makefile("rb")
for _ in range(2):
    print(answers.readline().decode().strip(), flush=True)
"""

FOLLOWERS = """
held = []
for _ in range(60):
    one = door()
    one.sendall(line("events", follow=True))
    held.append(one)
    one.recv(1)
print("following", flush=True)
sys.stdin.readline()
for one in held:
    hangs = select.poll()
    hangs.register(one, 0)
    hangs.poll()
print("dropped", flush=True)
"""

ALL_LINES = """
one = door()
answers = one.makefile("rb")
while True:
    one.sendall(line("logs", agent="loud", lines=100_000_000))
    answers.readline()
"""

#: Lines that are no request of ours; an empty one is nothing.
NONSENSE = (
    b"null",
    b"[]",
    b"{}",
    b'"x"',
    b"17",
    b"\xff\xfe",
    b'{"jsonrpc":"2.0"',
    b'{"jsonrpc":"2.0","id":true,"method":"status"}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"status"}',
    b'{"jsonrpc":"2.0","id":[1],"method":"status"}',
    b'{"jsonrpc":"2.0","id":{},"method":"status"}',
    b'{"jsonrpc":"2.0","method":"shutdown"}',
    b'{"jsonrpc":"2.0","id":null,"method":"shutdown"}',
    b'{"jsonrpc":"2.0","id":1,"method":"run"}',
    b'{"jsonrpc":"2.0","id":1,"method":"__class__.__init__"}',
    b'{"jsonrpc":"2.0","id":1,"method":"shutdown.plan"}',
    b'{"jsonrpc":"2.0","id":1,"method":["shutdown"]}',
    b'{"jsonrpc":"2.0","id":1,"method":"shutdown","params":{"Plan":true}}',
    b'{"jsonrpc":"2.0","id":1,"method":"shutdown","params":[true]}',
    b'[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]',
    b'{"jsonrpc":"1.0","id":1,"method":"shutdown"}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"shutdown"}',
    b'{"jsonrpc":"2.0","id":1,"method":"shutdown","extra":1}',
    b'{"jsonrpc":"2.0","id":' + b"9" * 100_000 + b',"method":"status"}',
    b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 900_000 + b'"}',
    b"[" * 500_000,
    b'{"a":' * 100_000,
)
