"""How fast heed serve answers one client and many, and other servers with the same weights, in turns on the same machine.

./dev interop serve --speed               makes models of random weights and measures everything
python interop/serve_speed.py --help      one thing alone, other models

Embeddings: the shape of all-MiniLM-L6-v2, texts of 4 to 24 words; the other server is sentence-transformers behind FastAPI.
Text: the shape of GPT-2, prompts of 16 tokens, 48 new ones, greedy; the other server is that of llama.cpp. All in f32. The package of
llama.cpp is compiled for AVX2, so heed is also measured without AVX-512; --llama measures a llama-server that was compiled here.
"""
import argparse
import json
import os
import pathlib
import random
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from serve_models import WORDS, write_gpt2, write_minilm

HERE = pathlib.Path(__file__).resolve().parent
NEW_TOKENS = 48


def http(path, body):
    text = json.dumps(body).encode()
    return (b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(text))) + text


class Client:
    """A connection that sends its next request as soon as the answer is there."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self.data = b""

    def send(self, request):
        self.data, self.begin = b"", time.monotonic()
        self.socket.sendall(request)

    def receive(self):
        """-> whether the answer is complete"""
        more = self.socket.recv(1 << 18)
        assert more, "the server closed the connection"
        self.data += more
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = self.data[:end].lower()
        assert b" 200 " in head.split(b"\r\n", 1)[0] + b" ", self.data[:300]
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        return len(self.data) >= end + 4 + length


def load(port, clients, seconds, requests):
    """-> answers per second, median latency, the last answer"""
    selector, done, times, end, place = selectors.DefaultSelector(), 0, [], time.monotonic() + seconds, 0
    for _ in range(clients):
        client = Client(port)
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.send(requests[place % len(requests)])
        place += 1
    begin, running, last = time.monotonic(), clients, b""
    while running:
        for key, _ in selector.select(60):
            client = key.data
            if not client.receive():
                continue
            last = client.data
            done += 1
            times.append(time.monotonic() - client.begin)
            if time.monotonic() < end:
                client.send(requests[place % len(requests)])
                place += 1
            else:
                selector.unregister(client.socket)
                client.socket.close()
                running -= 1
    return done / (time.monotonic() - begin), statistics.median(times), last


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, name, command, log, path="/health", environment=None):
        """command: PORT in it is replaced"""
        self.name, self.port = name, free_port()
        command = [str(self.port) if part == "PORT" else str(part) for part in command]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(environment or {})})
        for _ in range(1200):
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        log.seek(0)
        raise SystemExit(f"{name} does not answer: " + log.read().decode(errors="replace")[-2000:])

    def text(self, request):
        client = Client(self.port)
        client.send(request)
        while not client.receive():
            pass
        return json.loads(client.data[client.data.find(b"\r\n\r\n"):])


def embeddings(options, log, threads, servers):
    """Starts the servers. -> requests, numbers of clients, unit, units of an answer"""
    heed = [options.program, "serve", f"model={options.minilm}", "--port", "PORT", "--runs", "", "--quiet"]
    servers.append(Server("heed", heed, log, environment=threads))
    if not options.alone:
        servers.append(Server("sentence-transformers", [sys.executable, "-P", HERE / "serve_peer.py", options.minilm, "PORT", options.threads], log))
    chance = random.Random(1)
    texts = [" ".join(chance.choices(WORDS, k=chance.randint(4, 24))) for _ in range(256)]
    return [http("/v1/embeddings", {"model": "model", "input": text}) for text in texts], [1, 64], "texts/s", 1


def texts(options, log, threads, servers):
    heed = [options.program, "serve", f"model={options.gpt2}", "--port", "PORT", "--runs", "", "--quiet"]
    servers.append(Server("heed", heed, log, environment=threads))
    if not options.alone:
        servers.append(Server("heed, AVX2", heed, log, environment=threads | {"HEED_ISA": "avx2"}))
        peer = [sys.executable, "-P", HERE / "serve_llama.py", options.gguf, "PORT", options.threads, 16]
        servers.append(Server("llama.cpp, AVX2", peer, log))
        if options.llama:
            native = [options.llama, "--model", options.gguf, "--port", "PORT", "--threads", options.threads, "--parallel", 16, "--ctx-size", 2048,
                      "--cache-type-k", "f32", "--cache-type-v", "f32", "--alias", "model"]
            servers.append(Server("llama.cpp, native", native, log))
    chance = random.Random(1)
    prompts = [[chance.randrange(256, 50000) for _ in range(16)] for _ in range(64)]
    body = {"model": "model", "max_tokens": NEW_TOKENS, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
    requests = [http("/v1/completions", body | {"prompt": prompt}) for prompt in prompts]
    found = [server.text(requests[0])["choices"][0]["text"].split() for server in servers]
    for server, each in zip(servers[1:], found[1:]):
        same = sum(a == b for a, b in zip(found[0], each))
        print(f"{server.name}: {same} of {len(found[0])} words of a text are heed's", flush=True)
    return requests, [1, 16], "tokens/s", NEW_TOKENS


def measure(options, what, log):
    servers = []
    try:
        requests, clients, unit, each = what(options, log, {"HEED_THREADS": str(options.threads)}, servers)
        rates = {(server.name, count): [] for server in servers for count in clients}
        for round_number in range(options.rounds + 1):  # the first one warms up
            for count in clients:
                for server in servers:
                    rate, median, _ = load(server.port, count, options.seconds if round_number else 2, requests)
                    if round_number:
                        rates[server.name, count].append(rate * each)
                        print(f"round {round_number}: {server.name}, {count} clients: {rate * each:.0f} {unit}, median {1e3 * median:.1f} ms", flush=True)
    finally:
        for server in servers:
            server.process.terminate()
            server.process.wait()
    best = {key: statistics.median(found) for key, found in rates.items()}
    few, many = clients
    out = [f"{'server':24}{f'{few} client':>14}{f'{many} clients':>14}  {'many/one':>9}{'heed/this':>11}   range of {many} clients, {unit}"]
    for server in servers:
        one, all_of = best[server.name, few], best[server.name, many]
        lowest, highest = min(rates[server.name, many]), max(rates[server.name, many])
        out.append(f"{server.name:24}{one:14.1f}{all_of:14.1f}  {all_of / one:8.2f}x{best['heed', many] / all_of:10.2f}x   {lowest:.1f} to {highest:.1f}")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["all", "embeddings", "text"], default="all")
    parser.add_argument("--minilm", help="folder of a sentence encoder, instead of random weights")
    parser.add_argument("--gpt2", help="folder of a language model with 50,000 or more tokens, instead of random weights")
    parser.add_argument("--gguf", help="the same model for llama.cpp")
    parser.add_argument("--llama", help="a llama-server, to measure it too")
    parser.add_argument("--program", default="build/heed")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--alone", action="store_true", help="heed without other servers")
    options = parser.parse_args()
    assert (options.gpt2 is None) == (options.gguf is None), "--gpt2 and --gguf belong together"
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryFile() as log:
        folder = pathlib.Path(temporary)
        tables = []
        if options.what != "text":
            if not options.minilm:
                options.minilm = folder / "minilm"
                write_minilm(options.minilm)
            tables.append(measure(options, embeddings, log))
        if options.what != "embeddings":
            if not options.gpt2:
                options.gpt2, options.gguf = folder / "gpt2", folder / "gpt2.gguf"
                write_gpt2(options.gpt2, options.gguf)
            tables.append(measure(options, texts, log))
        print(f"\n{options.threads} threads, load average {os.getloadavg()[0]:.1f}, {options.rounds} rounds of {options.seconds:g} s each in turns; medians")
        for table in tables:
            print("\n" + "\n".join(table))


if __name__ == "__main__":
    main()
