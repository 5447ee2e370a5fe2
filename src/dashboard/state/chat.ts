import type { Static } from '@sinclair/typebox'
import type { ChatSummary, chatEventShape } from '../../dialects/native/schema.ts'
import { callApi } from './api.ts'
import { readRequestError, toFailure } from './api-error.ts'
import type { PlaygroundRequest } from './code-body.ts'
import { freshToken } from './session.ts'

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
  for await (const event of readEvents(response.body)) {
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

async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ChatEvent, void> {
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

const lifetimeMs = 3_600_000
const renewBeforeMs = 60_000

type PlaygroundKey = {
  /** Returns a key that is valid for at least a minute: the same for concurrent callers. */
  take(): Promise<string>
  /** Revokes the key; resolves when that is done or has failed. `isClosing` = the page is closing, so nothing can be awaited. */
  giveBack(isClosing: boolean): Promise<void>
}

type HeldKey = { readonly expiresAt: number; readonly made: Promise<{ readonly id: string; readonly key: string }> }

/**
 * The chat endpoints only accept keys, so the playground creates its own: on first use, valid for one hour, kept in
 * memory, and revoked when the page is left. If that fails, the key expires.
 */
export function createPageKey(): PlaygroundKey {
  let held: HeldKey | null = null
  const make = (): HeldKey => {
    const expiresAt = Date.now() + lifetimeMs
    const body = { name: 'playground', expires_at: new Date(expiresAt).toISOString() }
    const own = { expiresAt, made: callApi('POST /api/v1/keys', { body }) }
    own.made.catch(() => {
      if (held === own) held = null
    })
    return own
  }
  return {
    async take() {
      // Decided without waiting: otherwise each of several conversations would create a key, and only the last one be revoked.
      if (held === null || held.expiresAt - Date.now() < renewBeforeMs) held = make()
      return (await held.made).key
    },
    async giveBack(isClosing) {
      const going = held
      held = null
      if (going === null) return
      try {
        const { id } = await going.made
        await fetch(`/api/v1/keys/${id}`, {
          method: 'DELETE',
          headers: { authorization: `Bearer ${await freshToken()}` },
          keepalive: isClosing,
        })
      } catch {
        // The key expires.
      }
    },
  }
}
