"""The official `anthropic` client for Python against a gateway: python3 anthropic_python.py BASE_URL KEY. Each line of its output is one check."""

import sys

import anthropic

client = anthropic.Anthropic(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
models = ["claude-haiku-4-5", "openai/gpt-5.4-mini", "google/gemini-3.8-flash"]
weather = {
    "name": "weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def check(name, holds):
    assert holds, name
    print(f"ok: {name}")


for model in models:
    answer = client.messages.create(model=model, max_tokens=200, messages=[{"role": "user", "content": "Hi"}])
    check(f"{model} answers", answer.content[0].text != "" and answer.stop_reason == "end_turn")
    check(f"{model} counts", answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0)
    with client.messages.stream(
        model=model, max_tokens=200, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        text = "".join(stream.text_stream)
    check(f"{model} streams", text != "" and stream.get_final_message().stop_reason == "end_turn")

    messages = [{"role": "user", "content": "Weather? [[sim:reasoning=20, parallel=1]]"}]
    options = {"model": model, "max_tokens": 3000, "tools": [weather], "thinking": {"type": "enabled", "budget_tokens": 1024}}
    called = client.messages.create(messages=messages, **options)
    check(f"{model} calls a tool", called.stop_reason == "tool_use")
    call = next(block for block in called.content if block.type == "tool_use")
    messages += [
        {"role": "assistant", "content": called.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "mild"}]},
    ]
    said = client.messages.create(messages=messages, **options)
    check(f"{model} reads the result", any("mild" in block.text for block in said.content if block.type == "text"))
    counted = client.messages.count_tokens(model=model, messages=[{"role": "user", "content": "Hi"}])
    check(f"{model} counts tokens", counted.input_tokens > 0)

    history, thoughts = [], 0
    for turn in range(5):
        history.append({"role": "user", "content": f"Turn {turn} [[sim:reasoning=30, parallel=1]]"})
        with client.messages.stream(messages=history, **options) as stream:
            called = stream.get_final_message()
        call = next(block for block in called.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "mild"}
        history += [{"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
        said = client.messages.create(messages=history, **options)
        history.append({"role": "assistant", "content": said.content})
        thoughts += sum(message.content[0].type in ("thinking", "redacted_thinking") for message in (called, said))
    check(f"{model} thinks on over five turns", thoughts == 10)

for name, kind, options in [
    ("an unknown model", anthropic.NotFoundError, {"model": "nope"}),
    ("an overflow", anthropic.BadRequestError, {"messages": [{"role": "user", "content": "[[sim:context_overflow]]"}]}),
]:
    try:
        client.messages.create(
            **{"model": models[1], "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}], **options}
        )
        check(name, False)
    except kind as error:
        check(name, error.body["type"] == "error" and error.request_id.startswith("req_"))
