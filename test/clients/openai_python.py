"""The official `openai` client for Python, pointed at a gateway: `openai_python.py <base address> <key>`.

Prints one line per guarantee and exits 1 at the first that does not hold.
"""

import asyncio
import json
import sys

import openai
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

BASE_URL, KEY = sys.argv[1:3]
MODELS = ["openai/gpt-5.4-mini", "openai/gpt-4.1", "anthropic/claude-haiku-5-5", "anthropic/claude-sonnet-4-6"]
MODELS += ["google/gemini-3.8-flash", "google/gemini-3.5-flash", "gateway-ai"]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
PLACE = {"city": "simulated city", "days": 1}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Weather", "parameters": SCHEMA}}]

client = OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=3)


class Place(BaseModel):
    city: str
    days: int


def user(content):
    return [{"role": "user", "content": content}]


def chat(model):
    answer = client.chat.completions.create(model=model, messages=user("Say hello"))
    assert "Say hello" in answer.choices[0].message.content
    assert answer._request_id == answer.id
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    return answer.choices[0].message.content


def stream(model, whole):
    options = {"include_usage": True}
    chunks = list(
        client.chat.completions.create(model=model, messages=user("Say hello"), stream=True, stream_options=options)
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 0


def stream_helper(model, whole):
    with client.chat.completions.stream(model=model, messages=user("Say hello")) as events:
        deltas = "".join(event.delta for event in events if event.type == "content.delta")
        final = events.get_final_completion()
    assert deltas == whole == final.choices[0].message.content
    assert final.choices[0].finish_reason == "stop"


def tools(model):
    messages = user("Weather? [[sim:parallel=2]]")
    whole = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    with client.chat.completions.stream(model=model, messages=messages, tools=TOOLS) as events:
        streamed = events.get_final_completion()
    for answer in (whole, streamed):
        reply = answer.choices[0].message
        assert answer.choices[0].finish_reason == "tool_calls"
        assert [json.loads(call.function.arguments) for call in reply.tool_calls] == [PLACE, PLACE]
        results = [{"role": "tool", "tool_call_id": call.id, "content": "18 degrees"} for call in reply.tool_calls]
        last = client.chat.completions.create(model=model, messages=messages + [reply] + results, tools=TOOLS)
        assert "18 degrees" in last.choices[0].message.content


def schema(model):
    wanted = {"type": "json_schema", "json_schema": {"name": "place", "strict": True, "schema": SCHEMA}}
    answer = client.chat.completions.create(model=model, messages=user("Where?"), response_format=wanted)
    assert json.loads(answer.choices[0].message.content) == PLACE
    parsed = client.chat.completions.parse(model=model, messages=user("Where?"), response_format=Place)
    assert parsed.choices[0].message.parsed == Place(**PLACE)


def caught(wanted, act):
    try:
        act()
    except wanted as error:
        return error
    raise AssertionError(f"no {wanted.__name__}")


def errors():
    ask = client.chat.completions.create
    hello = {"model": MODELS[0], "messages": user("Hi")}
    stranger = OpenAI(base_url=BASE_URL, api_key="sk-wrong")
    error = caught(openai.AuthenticationError, lambda: stranger.chat.completions.create(**hello))
    assert error.code == "invalid_api_key" and error.request_id.startswith("req_")
    error = caught(openai.NotFoundError, lambda: ask(model="gpt-nobody", messages=user("Hi")))
    assert (error.code, error.param) == ("model_not_found", "model")
    error = caught(openai.BadRequestError, lambda: ask(**hello, temperature=3))
    assert (error.code, error.param, error.type) == ("invalid_request", "temperature", "invalid_request_error")
    failing = user("Fail [[sim:status=500]]")
    error = caught(openai.InternalServerError, lambda: ask(model=MODELS[0], messages=failing))
    assert (error.status_code, error.code) == (502, "upstream_failed")


def stream_error(model):
    cut = user("Tell me [[sim:chunk=10, reasoning=0, pace_ms=150, cut_after=4]]")
    text = []

    def read():
        headers = {"X-Gateway-No-Fallback": "true"}
        for chunk in client.chat.completions.create(model=model, messages=cut, stream=True, extra_headers=headers):
            text.append(chunk.choices[0].delta.content or "")

    error = caught(openai.APIError, read)
    assert error.code == "upstream_failed" and error.type == "upstream_error"
    assert "".join(text).startswith("[simulated ")


def timeout():
    slow = user("Talk [[sim:pace_ms=50, tokens=400]]")
    hasty = client.with_options(timeout=0.2, max_retries=0)
    caught(openai.APITimeoutError, lambda: hasty.chat.completions.create(model=MODELS[0], messages=slow))


def models():
    listed = list(client.models.list())
    assert listed[0].id == "gateway-ai"
    assert client.models.retrieve("anthropic/claude-haiku-5-5").owned_by == "anthropic"


def headers():
    raw = client.chat.completions.with_raw_response.create(model="openai/gpt-4.1", messages=user("Hi"))
    assert raw.headers["x-gateway-model"] == "openai/gpt-4.1" == raw.parse().model
    assert raw.headers["deprecation"].startswith("@")


def embeddings(model):
    texts = ["A cat sat on a mat.", "Ein Hund lag vor der Tür."]
    decoded = client.embeddings.create(model=model, input=texts)
    floats = client.embeddings.create(model=model, input=texts, encoding_format="float")
    assert [item.index for item in decoded.data] == [0, 1]
    for one, other in zip(decoded.data, floats.data):
        assert max(abs(a - b) for a, b in zip(one.embedding, other.embedding)) < 1e-6
    caught(openai.BadRequestError, lambda: client.embeddings.create(model=model, input=""))


async def asynchronous():
    async with AsyncOpenAI(base_url=BASE_URL, api_key=KEY) as many:
        asked = (many.chat.completions.create(model=model, messages=user("Say hello")) for model in MODELS)
        answers = await asyncio.gather(*asked)
        assert all("Say hello" in answer.choices[0].message.content for answer in answers)
        async with many.chat.completions.stream(model=MODELS[2], messages=user("Talk [[sim:tokens=400]]")) as events:
            async for event in events:
                if event.type == "content.delta":
                    break


def responses(model):
    answer = client.responses.create(model=model, input="Say hello", store=False)
    assert answer.status == "completed" and "You asked: “Say hello”." in answer.output_text
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": False}
    common = {"model": model, "tools": [tool], "store": False, "include": ["reasoning.encrypted_content"]}
    with client.responses.stream(input="Go [[sim:tool=weather]]", **common) as events:
        assert [event.type for event in events][-1] == "response.completed"
        output = events.get_final_response().output
    call = next(item for item in output if item.type == "function_call")
    turn = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in output]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    history = [{"role": "user", "content": "Go"}, *turn, result]
    assert "“sunny”" in client.responses.create(input=history, **common).output_text
    parsed = client.responses.parse(model=model, input="Where?", text_format=Place)
    assert parsed.output_parsed == Place(**PLACE)
    error = caught(openai.BadRequestError, lambda: client.responses.create(model=model, input="Hi", background=True))
    assert (error.code, error.param) == ("unsupported_parameter", "background")
    stored = {"model": model, "input": "Hi", "previous_response_id": "resp_1"}
    error = caught(openai.BadRequestError, lambda: client.responses.create(**stored))
    assert (error.code, error.param) == ("previous_response_not_found", "previous_response_id")


for name in MODELS:
    said = chat(name)
    responses(name)
    stream(name, said)
    stream_helper(name, said)
    tools(name)
    schema(name)
    print(f"ok: {name} answers, streams, calls tools and keeps to a schema")
for name in ("text-embedding-3-small", "google/gemini-embedding-001"):
    embeddings(name)
print("ok: embeddings by default are those of encoding_format float")
models()
headers()
print("ok: models are listed and retrieved, headers are read")
asyncio.run(asynchronous())
print("ok: the asynchronous client asks all at once and leaves a stream early")
timeout()
print("ok: a timeout is an APITimeoutError")
for name in (MODELS[0], MODELS[2], MODELS[4]):
    stream_error(name)
print("ok: a failure within a stream is an APIError after the text that came")
errors()
print("ok: refusals and failures arrive as their classes")
