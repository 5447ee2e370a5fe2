"""LlamaIndex against a gateway: llamaindex_python.py BASE_URL KEY MODEL. One line per check."""

import sys

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai import OpenAI, OpenAIResponses
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

URL, KEY, MODEL = sys.argv[1:4]
V1 = f"{URL}/v1"


class Place(BaseModel):
    city: str
    days: int


def weather(city: str) -> str:
    """Tells the weather."""
    return f"mild in {city}"


def check(name, holds):
    assert holds, name
    print(f"ok: {MODEL} {name}")


def models():
    like = {"is_chat_model": True, "is_function_calling_model": True, "context_window": 128000}
    yield OpenAILike(model=MODEL, api_base=V1, api_key=KEY, **like)
    # The classes of OpenAI and Anthropic know the windows of these companies' names only.
    if MODEL.startswith("openai/"):
        plain = MODEL.removeprefix("openai/")
        yield OpenAI(model=plain, api_base=V1, api_key=KEY)
        yield OpenAIResponses(model=plain, api_base=V1, api_key=KEY)
    if MODEL.startswith("anthropic/"):
        yield Anthropic(model=MODEL.removeprefix("anthropic/"), base_url=URL, api_key=KEY, max_tokens=500)


for llm in models():
    name = type(llm).__name__
    hello = [ChatMessage(role="user", content="Say hello")]
    check(f"completes ({name})", "Say hello" in llm.complete("Say hello").text)
    check(f"chats ({name})", "Say hello" in llm.chat(hello).message.content)
    check(f"streams ({name})", "Say hello" in list(llm.stream_chat(hello))[-1].message.content)
    tool = FunctionTool.from_defaults(weather)
    answer = llm.chat_with_tools([tool], user_msg="How is the weather?", tool_required=True)
    calls = llm.get_tool_calls_from_response(answer)
    check(f"calls a tool ({name})", calls[0].tool_name == "weather" and "city" in calls[0].tool_kwargs)
    typed = llm.as_structured_llm(Place).chat(hello)
    check(f"keeps to a schema ({name})", isinstance(typed.raw, Place))

embedding = OpenAIEmbedding(model="text-embedding-3-small", api_base=V1, api_key=KEY)
vectors = embedding.get_text_embedding_batch(["A cat.", "A dog."])
check("embeds (OpenAIEmbedding)", [len(vector) for vector in vectors] == [1536, 1536])
