"""heed serve under bad clients: idle, dripping and malformed ones. Needs nothing but Python.

python3 interop/serve_load.py --program build/heed
"""
import argparse
import json
import pathlib
import random
import re
import resource
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent


def request(body):
    text = json.dumps(body).encode()
    return b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def resident(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return int(re.search(rb"\nheed_resident_bytes (\d+)", answer.read())[1])


def seconds_of_health(port):
    begin = time.monotonic()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=30) as answer:
        assert answer.status == 200
    return time.monotonic() - begin


def malformed(port, count, seed):
    chance = random.Random(seed)
    whole = request({"model": "gpt2-lm", "prompt": "w1 w2", "max_tokens": 2})
    statuses = {}
    for _ in range(count):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(damaged))
            if chance.random() < 0.3:
                del damaged[at:at + chance.randint(1, 9)]
            else:
                damaged[at] = chance.randrange(256)
        with connect(port) as client:
            client.sendall(damaged)
            client.shutdown(socket.SHUT_WR)
            answer = client.recv(4096)
            status = answer[9:12].decode(errors="replace") if answer else "closed"
            statuses[status] = statuses.get(status, 0) + 1
    return statuses


def active(port, clients, seconds):
    """Clients that generate all the time. -> answers"""
    done, end = [0] * clients, time.monotonic() + seconds
    body = request({"model": "gpt2-lm", "prompt": "w1 w2 w3", "max_tokens": 8, "temperature": 0})

    def work(number):
        with connect(port) as client:
            file = client.makefile("rb")
            while time.monotonic() < end:
                client.sendall(body)
                assert file.readline().split()[1] in (b"200", b"429")
                length = 0
                while (line := file.readline()) != b"\r\n":
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                file.read(length)
                done[number] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(done)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/heed")
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--drip", type=int, default=500)
    parser.add_argument("--active", type=int, default=200)
    parser.add_argument("--malformed", type=int, default=10000)
    options = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[1], 8192), limit[1]))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "gpt2-lm"
        shutil.copytree(ROOT / "tests/fixtures/gpt2-lm", folder)
        vocabulary = {f"w{i}": i for i in range(211)}
        (folder / "tokenizer.json").write_text(json.dumps(
            {"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type": "WordLevel", "unk_token": "w2", "vocab": vocabulary}}))
        command = [options.program, "serve", str(folder), "--port", "0", "--runs", "", "--quiet", "--max-connections", "4096"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                port = int(server.stdout.readline().strip().rsplit(":", 1)[1])
                malformed(port, 500, 0)
                active(port, 8, 2)
                before = resident(port)
                idle = [connect(port) for _ in range(options.idle)]
                print(f"{len(idle)} idle connections: /health in {1e3 * seconds_of_health(port):.1f} ms")
                answers = active(port, options.active, 5)
                print(f"and {options.active} active ones: {answers / 5:.0f} answers/s")
                for each in idle:
                    each.close()
                drip = [connect(port) for _ in range(options.drip)]
                slowest = 0.0
                for letter in b"GET /h":
                    for each in drip:
                        each.sendall(bytes([letter]))
                    slowest = max(slowest, seconds_of_health(port))
                    time.sleep(1)
                print(f"{len(drip)} clients that send a byte a second: /health in at most {1e3 * slowest:.1f} ms")
                for each in drip:
                    each.close()
                memory, statuses = [resident(port)], {}
                for part in range(4):
                    for status, count in malformed(port, options.malformed // 4, 1 + part).items():
                        statuses[status] = statuses.get(status, 0) + count
                    memory.append(resident(port))
                print(f"{options.malformed} malformed requests: {statuses}")
                print("memory after each quarter of them:", " ".join(f"{each / 2**20:.1f}" for each in memory), f"MiB; at first {before / 2**20:.1f}")
                assert memory[-1] < memory[1] + 2**21, "memory grows with malformed requests"
                assert server.poll() is None, "the server ended"
            finally:
                server.terminate()
        assert server.returncode == 0, server.returncode


if __name__ == "__main__":
    main()
