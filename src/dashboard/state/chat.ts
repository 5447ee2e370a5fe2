import type { Static } from '@sinclair/typebox'
import type { ChatSummary, chatEventShape } from '../../dialects/native/schema.ts'
import { readRequestError, toFailure } from './api-error.ts'
import type { DryRunResult } from './routes.ts'

type ChatEvent = Static<typeof chatEventShape>

export type ChatMessage = { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }

export type PlaygroundRequest = {
  readonly messages: readonly ChatMessage[]
  readonly model: string
  readonly strategy?: string
  readonly enhance_prompt?: boolean
  readonly web?: 'auto' | 'off'
  readonly max_output_tokens?: number
  readonly temperature?: number
  readonly stream_mode: 'buffered' | 'realtime'
}

/**
 * Yields the deltas of one streamed response, then its summary. Throws `RequestError`, also if the stream is truncated.
 */
export async function streamChat(
  key: string,
  request: PlaygroundRequest,
  onPiece: (piece: { readonly text: string; readonly reasoning: string }) => void,
  signal: AbortSignal,
): Promise<ChatSummary> {
  const response = await fetch('/api/v1/chat', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...request, stream: true }),
    signal,
  })
  if (!response.ok || response.body === null) throw await readRequestError(response)
  for await (const event of eventsOf(response.body)) {
    switch (event.type) {
      case 'delta':
        onPiece({ text: event.content, reasoning: event.reasoning ?? '' })
        break
      case 'done':
        return event
      case 'error':
        throw toFailure(502, event.error)
    }
  }
  throw toFailure(502, undefined)
}

/** Returns the dry run of a request; null if the gateway does not support it. Calls no model and costs nothing. */
export async function requestDryRun(key: string, request: PlaygroundRequest): Promise<DryRunResult | null> {
  const response = await fetch('/api/v1/route', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(request),
  })
  if (response.ok) return response.json()
  const failure = await readRequestError(response)
  if (failure.status === 404) return null
  throw failure
}

async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<ChatEvent, void> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let rest = ''
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const frames = (rest + decoder.decode(read.value, { stream: true })).split('\n\n')
      rest = frames.pop() ?? ''
      // Other frames are pings.
      for (const frame of frames) if (frame.startsWith('data: ')) yield JSON.parse(frame.slice(6))
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
