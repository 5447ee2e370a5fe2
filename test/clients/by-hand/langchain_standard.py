"""LangChain's standard integration tests against a gateway: `pytest langchain_standard.py` with GATEWAY_URL, GATEWAY_KEY and MODEL."""

import os

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langchain_tests.integration_tests import ChatModelIntegrationTests, EmbeddingsIntegrationTests

URL, KEY = os.environ["GATEWAY_URL"], os.environ["GATEWAY_KEY"]
MODEL = os.environ.get("MODEL", "openai/gpt-5.4-mini")


class Chat(ChatModelIntegrationTests):
    """What all three classes can do with the model."""

    supports_image_inputs = True
    supports_image_tool_message = True
    has_tool_choice = True
    has_structured_output = True
    supports_json_mode = True
    supports_anthropic_inputs = False

    @property
    def standard_chat_model_params(self):
        return {}  # several models refuse a temperature

class TestChatCompletions(Chat):
    # As OpenAI's API: a tool message has text only.
    supports_image_tool_message = False

    @property
    def chat_model_class(self):
        return ChatOpenAI

    @property
    def chat_model_params(self):
        return {"model": MODEL, "base_url": f"{URL}/v1", "api_key": KEY, "stream_usage": True}


class TestResponses(Chat):
    @property
    def chat_model_class(self):
        return ChatOpenAI

    @property
    def chat_model_params(self):
        return {"model": MODEL, "base_url": f"{URL}/v1", "api_key": KEY, "use_responses_api": True}


class TestMessages(Chat):
    supports_anthropic_inputs = True
    supports_json_mode = False

    @property
    def chat_model_class(self):
        return ChatAnthropic

    @property
    def chat_model_params(self):
        return {"model": MODEL, "base_url": URL, "api_key": KEY, "max_tokens": 1000}


class TestEmbeddings(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return OpenAIEmbeddings

    @property
    def embedding_model_params(self):
        return {"model": "text-embedding-3-small", "base_url": f"{URL}/v1", "api_key": KEY}
