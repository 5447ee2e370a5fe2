"""The pictures and documents that LangChain's tests download come from here, so that they run without the Internet."""

import base64

import httpx
import pytest

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="


@pytest.fixture(autouse=True)
def local_downloads(monkeypatch):
    monkeypatch.setattr(httpx, "get", lambda url, **_: httpx.Response(200, content=base64.b64decode(PNG)))
