"""The OpenAI Agents SDK for Python against a gateway: agents_python.py BASE_URL KEY MODEL. One line per check."""

import asyncio
import sys

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

URL, KEY, MODEL = sys.argv[1:4]
set_tracing_disabled(True)
client = AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY)


class Place(BaseModel):
    city: str
    days: int


@function_tool
def weather(city: str) -> str:
    return f"mild in {city}"


def check(name, holds):
    assert holds, name
    print(f"ok: {MODEL} {name}")


async def main():
    for form in (OpenAIResponsesModel, OpenAIChatCompletionsModel):
        model, name = form(MODEL, openai_client=client), form.__name__
        helper = Agent(name="helper", instructions="Be brief.", model=model)
        first = await Runner.run(helper, "Say hello")
        check(f"answers ({name})", "Say hello" in first.final_output)
        again = await Runner.run(helper, first.to_input_list() + [{"role": "user", "content": "And again"}])
        check(f"goes on with the items of before ({name})", "And again" in again.final_output)
        streamed = Runner.run_streamed(helper, "Say hello")
        kinds = [event.type async for event in streamed.stream_events()]
        check(f"streams ({name})", "raw_response_event" in kinds and "Say hello" in streamed.final_output)
        user = Agent(name="user", model=model, tools=[weather], model_settings=ModelSettings(tool_choice="weather"))
        used = await Runner.run(user, "How is the weather?")
        check(f"uses a tool ({name})", "mild in" in used.final_output)
        typed = Agent(name="typed", model=model, output_type=Place)
        check(f"keeps to a schema ({name})", isinstance((await Runner.run(typed, "Where?")).final_output, Place))
        settings = ModelSettings(tool_choice="transfer_to_expert")
        expert = Agent(name="expert", model=model)
        desk = Agent(name="desk", model=model, handoffs=[expert], model_settings=settings)
        handed = await Runner.run(desk, "I need an expert")
        check(f"hands over ({name})", handed.last_agent.name == "expert")


asyncio.run(main())
