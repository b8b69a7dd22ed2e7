"""What many people run instead of heed serve for embeddings: sentence-transformers behind FastAPI, with OpenAI's interface.

python -P interop/serve_peer.py MODEL_FOLDER PORT THREADS
"""
import sys

import torch
import uvicorn
from fastapi import FastAPI
from sentence_transformers import SentenceTransformer

folder, port, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
model = SentenceTransformer(folder, device="cpu")
app = FastAPI()


@app.get("/health")
def health():
    return {"status": "ok"}


@app.post("/v1/embeddings")
def embed(body: dict):  # FastAPI calls it in a pool of threads
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    vectors = model.encode(texts, normalize_embeddings=True)
    data = [{"object": "embedding", "index": i, "embedding": vector.tolist()} for i, vector in enumerate(vectors)]
    return {"object": "list", "model": folder, "data": data}


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
