"""A streamed chat with the official OpenAI client."""

import os

from openai import APIError, OpenAI

client = OpenAI(base_url="http://127.0.0.1:3000/v1", api_key=os.environ["GATEWAY_KEY"])

try:
    stream = client.chat.completions.create(
        model="gateway-ai",  # or a model ID such as "anthropic/claude-sonnet-5-5"
        messages=[{"role": "user", "content": "Say hello in one sentence."}],
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in stream:
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
        if chunk.usage:
            print(f"\n{chunk.model}: {chunk.usage.total_tokens} tokens")
except APIError as error:
    raise SystemExit(f"The gateway rejected the request: {error}")
