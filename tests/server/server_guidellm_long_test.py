#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""guidellm from PyPI measures a server: chats and text completions as streams, four at a time; every request succeeds, with the tokens that
it asked for. server_guidellm_long_test.py FOLDER: that of hunch-serve; the package goes into FOLDER/guidellm (server_environment.py). Skipped
(77) where it cannot be had."""
import json
import os
import subprocess
import sys
import tempfile

from server_environment import environment

FOLDER = environment(__file__, "guidellm", ["guidellm"])

import importlib.metadata  # noqa: E402

from server_client import Server  # noqa: E402

REQUESTS, TOKENS = 16, 12

with tempfile.TemporaryDirectory() as folder, Server(os.path.join(FOLDER, "hunch-serve"), "--quiet") as server:
    prompts, out = os.path.join(folder, "prompts.jsonl"), os.path.join(folder, "out.json")
    with open(prompts, "w") as f:
        f.writelines(json.dumps({"prompt": p, "output_tokens_count": TOKENS}) + "\n" for p in ("Once upon a time", "The dog ran", "Lily had") * 8)
    for path in ("/v1/chat/completions", "/v1/completions"):
        subprocess.run([os.path.join(os.path.dirname(sys.executable), "guidellm"), "run", "--backend",
                        "kind=openai_http,target=http://127.0.0.1:%d,request_format=%s" % (server.port, path), "--profile",
                        "kind=concurrent,streams=4", "--constraint", "kind=max_requests,count=%d" % REQUESTS, "--data",
                        "kind=json_file,path=" + prompts, "--output", "kind=json,path=" + out, "--disable-console"],
                       env=dict(os.environ, HF_HUB_OFFLINE="1", HF_HOME=folder), check=True, timeout=600)
        with open(out) as f:
            done = json.load(f)["benchmarks"][0]["requests"]
        assert len(done["successful"]) == REQUESTS and not done["errored"], (path, done["errored"][:1])
        assert all(r["output_tokens"] == TOKENS for r in done["successful"]), (path, done["successful"][0])
print("guidellm", importlib.metadata.version("guidellm"))
