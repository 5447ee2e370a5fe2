"""The official google-genai client against a gateway: prints one line per check."""

import base64
import os
import sys

from google import genai
from google.genai import errors, types

url, key = sys.argv[1], sys.argv[2]
os.environ.pop("GOOGLE_API_KEY", None)
client = genai.Client(api_key=key, http_options={"base_url": url})
models = ["openai/gpt-5.4-mini", "anthropic/claude-haiku-5-5", "google/gemini-3.8-flash"]
pixel = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)


def check(name, is_met):
    assert is_met, name
    print("ok: " + name)


def weather(city: str) -> dict:
    """Weather of a place."""
    return {"sky": "sunny in " + city}


for model in models:
    whole = client.models.generate_content(model=model, contents="Why is the sky blue?")
    check(f"{model}: text", "sky" in whole.text and whole.candidates[0].finish_reason.name == "STOP")
    chunks = list(client.models.generate_content_stream(model=model, contents="Why is the sky blue?"))
    ends = [chunk.candidates[0].finish_reason for chunk in chunks if chunk.candidates and chunk.candidates[0].finish_reason]
    check(f"{model}: stream", len(ends) == 1 and "sky" in "".join(chunk.text or "" for chunk in chunks))
    # The SDK runs the function and sends the call back with its signature as bytes.
    config = types.GenerateContentConfig(tools=[weather], thinking_config=types.ThinkingConfig(include_thoughts=True))
    called = client.models.generate_content(
        model=model, contents="Weather? [[sim:tool=weather, reasoning=20]]", config=config
    )
    check(f"{model}: tools", "sunny" in called.text)
    schema = types.GenerateContentConfig(
        response_mime_type="application/json",
        response_schema={"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]},
    )
    check(f"{model}: schema", "city" in client.models.generate_content(model=model, contents="Where?", config=schema).text)
    image = types.Part.from_bytes(data=pixel, mime_type="image/png")
    check(f"{model}: image", client.models.generate_content(model=model, contents=[image, "Look"]).text != "")
    try:
        text = ""
        config = types.GenerateContentConfig(http_options={"headers": {"x-gateway-continue": "off"}})
        prompt = "Tell me [[sim:tokens=300, chunk=8, cut_after=40]]"
        for chunk in client.models.generate_content_stream(model=model, contents=prompt, config=config):
            text += chunk.text or ""
            assert not (chunk.candidates and chunk.candidates[0].finish_reason), "a cut stream has no end"
        check(f"{model}: truncated stream", False)
    except errors.ServerError as error:
        check(f"{model}: truncated stream", error.code == 502 and text != "")

chat = client.chats.create(model=models[0])
chat.send_message("One")
check("chat", "Two" in chat.send_message("Two").text)
vectors = client.models.embed_content(model="gemini-embedding-001", contents=["a cat", "a dog"]).embeddings
check("embeddings", len(vectors) == 2 and len(vectors[0].values) == 3072)
check("count_tokens", client.models.count_tokens(model="gateway-ai", contents="How many?").total_tokens > 1)
check("models", next(iter(client.models.list())).name == "models/gateway-ai")
for status, asked in [(404, {"model": "none"}), (400, {"config": {"temperature": 2, "top_p": 7}})]:
    try:
        client.models.generate_content(**{"model": models[0], "contents": "Hi", **asked})
        check(f"error {status}", False)
    except errors.ClientError as error:
        check(f"error {status}", error.code == status)
# A client without a name is closed before its request.
stranger = genai.Client(api_key="wrong", http_options={"base_url": url})
try:
    stranger.models.generate_content(model=models[0], contents="Hi")
    check("wrong key", False)
except errors.ClientError as error:
    check("wrong key", error.code == 401 and error.status == "UNAUTHENTICATED")
