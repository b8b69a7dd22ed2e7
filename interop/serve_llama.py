"""The server of llama.cpp, from the package xllamacpp: python -P interop/serve_llama.py GGUF PORT THREADS TEXTS"""
import sys
import threading

import xllamacpp

path, port, threads, texts = sys.argv[1], *map(int, sys.argv[2:5])
params = xllamacpp.CommonParams()
params.model.path = path
params.model_alias = {"model"}
params.hostnames = ["127.0.0.1"]
params.port = port
params.n_parallel = texts
params.n_ctx = 128 * texts
params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(params)
print(server.listening_address, xllamacpp.get_system_info(), flush=True)
threading.Event().wait()
