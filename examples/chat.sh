#!/bin/sh
# One chat request. Automatic routing chooses the model; the field `model` of the response names it.
curl -sS --fail-with-body http://127.0.0.1:3000/v1/chat/completions \
  -H "authorization: Bearer $GATEWAY_KEY" -H 'content-type: application/json' \
  -d '{"model": "gateway-ai", "messages": [{"role": "user", "content": "Say hello in one sentence."}]}'
