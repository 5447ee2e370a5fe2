import { Elysia } from 'elysia'
import { type ChatRouteDeps, exchange, type Listen } from '../../http/exchange.ts'
import { policies } from '../../http/policies.ts'
import { compatibleStream, completionBody } from './reply.ts'
import { readCompatible } from './request.ts'

const listen: Listen = (body, headers, bodyCharacters) => {
  const spoken = readCompatible(body, headers, bodyCharacters)
  return {
    ask: spoken.ask,
    spelling: spoken.spelling,
    stream: requestId => compatibleStream(spoken, requestId),
    body: (answer, opening, receipt) => completionBody(answer, receipt, opening, spoken),
  }
}

/** `POST /v1/chat/completions`: the chat-completions wire format, for existing client libraries. */
export function compatible(deps: ChatRouteDeps) {
  return new Elysia({ name: 'compatible' }).post(
    '/v1/chat/completions',
    ({ request, server }) => exchange(deps, listen, request, deps.newRequestId(), deps.connectionOf(request, server)),
    { parse: 'none', detail: { summary: 'Chat completions', ...policies.apiKey } },
  )
}
