"""heed serve with the official openai client, unchanged, and its API description checked by schemathesis."""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import openai

ROOT = pathlib.Path(__file__).resolve().parent.parent


def words(count):
    vocabulary = {f"w{i}": i for i in range(count)}
    return {"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type": "WordLevel", "unk_token": "w2", "vocab": vocabulary}}


def models(folder):
    """Fixtures with a tokenizer of words."""
    for name in ["gpt2-lm", "llama-grouped", "bert-model", "bert-sentiment", "marian-translate", "vit-classify"]:
        shutil.copytree(ROOT / "tests/fixtures" / name, folder / name, ignore=shutil.ignore_patterns("io.safetensors", "beams.safetensors"))
        size = json.loads((folder / name / "config.json").read_text()).get("vocab_size")
        if size:
            (folder / name / "tokenizer.json").write_text(json.dumps(words(size)))
        yield str(folder / name)
    template = "{% for m in messages %}{{ m['content'] }} {% endfor %}w3"
    (folder / "llama-grouped/tokenizer_config.json").write_text(json.dumps({"chat_template": template}))


def use_openai(address):
    client = openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=0)
    assert "gpt2-lm" in [each.id for each in client.models.list()]
    assert client.models.retrieve("gpt2-lm").id == "gpt2-lm"

    whole = client.completions.create(model="gpt2-lm", prompt="w5 w6", max_tokens=8, seed=3, n=2, logprobs=2)
    assert len(whole.choices) == 2 and whole.usage.completion_tokens <= 16 and len(whole.choices[0].logprobs.tokens) >= 1
    parts = client.completions.create(model="gpt2-lm", prompt="w5 w6", max_tokens=8, seed=3, stream=True)
    assert "".join(each.choices[0].text for each in parts if each.choices) == whole.choices[0].text

    chat = {"model": "llama-grouped", "messages": [{"role": "user", "content": "w5 w6"}], "max_tokens": 6, "temperature": 0}
    answer = client.chat.completions.create(**chat, logprobs=True, top_logprobs=3)
    text = answer.choices[0].message.content
    assert answer.choices[0].logprobs.content[0].top_logprobs[0].logprob <= 0
    parts = client.chat.completions.create(**chat, stream=True, stream_options={"include_usage": True})
    parts = list(parts)
    assert "".join(each.choices[0].delta.content or "" for each in parts if each.choices) == text
    assert parts[-1].usage.completion_tokens == answer.usage.completion_tokens

    vectors = client.embeddings.create(model="bert-model", input=["w5", "w6 w7"])  # the client asks for base64
    assert len(vectors.data) == 2 and abs(sum(x * x for x in vectors.data[0].embedding) - 1) < 1e-4
    for wrong, kind in [({"model": "nothing", "prompt": "a"}, openai.NotFoundError), ({"model": "gpt2-lm", "prompt": ""}, openai.BadRequestError)]:
        try:
            client.completions.create(**wrong)
        except kind as error:
            assert error.body["message"], error.body
        else:
            raise AssertionError(f"no {kind.__name__}")
    print("serve: the openai client works: models, completions, chat, streams, embeddings, errors")


def use_schemathesis(address, folder, cases, seed):
    with urllib.request.urlopen(address + "/openapi.json") as answer:
        api = json.load(answer)
    with urllib.request.urlopen(address + "/v1/models") as answer:
        names = [each["id"] for each in json.load(answer)["data"]]
    for schema in api["components"]["schemas"].values():  # else hardly any request would name a model
        if "model" in schema.get("properties", {}) and "example" in schema:
            schema["properties"]["model"]["enum"] = names + ["vit-tiny", "nothing"]
            if schema["example"].get("model") not in names:
                schema["example"]["model"] = names[0]
    (folder / "openapi.json").write_text(json.dumps(api))
    command = [str(pathlib.Path(sys.executable).parent / "schemathesis"), "run", str(folder / "openapi.json"), "--url", address,
               "--max-examples", str(cases), "--seed", str(seed), "--phases", "examples,fuzzing", "--workers", "2",
               "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
               "--exclude-path", "/api/runs/{task}/{name}/events", "--exclude-path", "/api/lab/{name}", "--request-timeout", "60"]
    return subprocess.run(command, check=False, cwd=folder).returncode  # it leaves files where it runs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/heed")
    parser.add_argument("--cases", type=int, default=30, help="cases of schemathesis for every endpoint")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "runs").mkdir()
        command = [options.program, "serve", *models(folder), "--port", "0", "--runs", str(folder / "runs"), "--no-train", "--quiet"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                address = server.stdout.readline().split()[-1]
                use_openai(address)
                failed = use_schemathesis(address, folder, options.cases, options.seed)
                assert server.poll() is None, "the server ended"
            finally:
                server.terminate()
        assert server.returncode == 0, server.returncode
    sys.exit(failed)


if __name__ == "__main__":
    main()
