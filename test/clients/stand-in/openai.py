"""Sends what `openai` sends for the calls of examples/chat.py, on machines without that package."""

import json
import urllib.error
import urllib.request
from types import SimpleNamespace


class APIError(Exception):
    pass


class OpenAI:
    def __init__(self, base_url, api_key):
        self.base_url, self.api_key = base_url, api_key
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(self, **body):
        headers = {"authorization": f"Bearer {self.api_key}", "content-type": "application/json"}
        url = f"{self.base_url}/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            response = urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            raise APIError(error.read().decode()) from None
        for line in response:
            data = line.decode().removeprefix("data: ").strip()
            if data == "[DONE]":
                return
            if data.startswith("{"):
                chunk = json.loads(data, object_hook=lambda fields: SimpleNamespace(**fields))
                chunk.usage = getattr(chunk, "usage", None)
                for choice in chunk.choices:
                    choice.delta.content = getattr(choice.delta, "content", None)
                yield chunk
        raise APIError("The stream ended without [DONE].")
