import type { Static } from '@sinclair/typebox'
import type { ChatSummary, chatEventShape } from '../../dialects/native/schema.ts'
import { readRequestError, toFailure } from './api-error.ts'
import type { PlaygroundRequest } from './playground-request.ts'
import type { DryRunResult } from './routes.ts'

type ChatEvent = Static<typeof chatEventShape>

type StreamOptions = {
  /** Receives the request ID, which also a stopped response has. */
  readonly onStart: (requestId: string | null) => void
  readonly onPiece: (piece: { readonly text: string; readonly reasoning: string }) => void
  readonly signal: AbortSignal
}

/**
 * Yields the deltas of one streamed response, then its summary. Throws `RequestError`, also if the stream is truncated.
 */
export async function streamChat(
  key: string,
  request: PlaygroundRequest,
  { onStart, onPiece, signal }: StreamOptions,
): Promise<ChatSummary> {
  const response = await fetch('/api/v1/chat', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...request, stream: true }),
    signal,
  })
  onStart(response.headers.get('x-request-id'))
  if (!response.ok || response.body === null) throw await readRequestError(response)
  for await (const event of eventsOf(response.body)) {
    switch (event.type) {
      case 'delta':
        if (event.content !== '' || event.reasoning !== undefined)
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
