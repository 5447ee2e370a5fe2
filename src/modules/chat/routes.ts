import { Elysia } from 'elysia'
import { type ChatRouteDeps, exchange, type Listen } from '../../http/exchange.ts'
import { policies } from '../../http/policies.ts'
import { nativeBody, nativeStream } from './reply.ts'
import { readNative } from './request.ts'

const listen: Listen = (body, headers, bodyCharacters) => ({
  ask: readNative(body, headers, bodyCharacters),
  spelling: {},
  stream: nativeStream,
  body: (answer, _opening, receipt) => nativeBody(answer, receipt),
})

/** `POST /api/v1/chat`: the gateway's own chat endpoint. */
export function chat(deps: ChatRouteDeps) {
  return new Elysia({ name: 'chat' }).post(
    '/api/v1/chat',
    ({ request, server }) => exchange(deps, listen, request, deps.newRequestId(), deps.connectionOf(request, server)),
    { parse: 'none', detail: { summary: 'Chat', ...policies.apiKey } },
  )
}
