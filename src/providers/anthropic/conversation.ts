import type { CacheMark, Message } from '../../core/chat/chat.ts'
import {
  getTurns,
  inlineImage,
  isVisible,
  type PartWriter,
  placeholderTexts,
  type ToolExchange,
  type WireTurn,
} from '../conversation-steps.ts'
import { type Json, objectIn } from '../json.ts'
import { cacheControl } from '../marked-prompt.ts'
import { uniqueNames } from '../tool-names.ts'

/** Returns the conversation in the wire format, without system texts. */
export function anthropicTurnsFor(messages: readonly Message[], prefill: boolean): readonly WireTurn<Json>[] {
  const turns = getTurns(messages, prefill, blockWriter())
  const last = turns.at(-1)
  // A prefill must not end in white space, and a final assistant turn may only contain text.
  const end = last?.role === 'assistant' ? last.parts.pop() : undefined
  if (end !== undefined) last?.parts.push({ ...end, text: String(end.text).trimEnd() })
  return turns
}

function blockWriter(): PartWriter<Json> {
  const callId = wireCallIds()
  return {
    text: textBlock,
    image: url => ({ type: 'image', source: imageSource(url) }),
    file: ({ url, name }) => ({ type: 'document', source: documentSource(url), title: name ?? undefined }),
    reasoning({ family, kind, text, data }) {
      if (family !== 'anthropic') return null
      return kind === 'redacted'
        ? { type: 'redacted_thinking', data }
        : { type: 'thinking', thinking: text, signature: data }
    },
    mark: withMark,
    exchange(exchange) {
      const { call } = exchange
      const id = callId(call.id)
      const use = { type: 'tool_use', id, name: call.name, input: objectIn(call.arguments) ?? {} }
      return [use, { type: 'tool_result', tool_use_id: id, ...getResult(exchange) }]
    },
  }
}

function getResult({ result, isError }: ToolExchange): Json {
  if (result === null) return { content: placeholderTexts.missingResult, is_error: true }
  return { ...(isVisible(result) ? { content: result } : {}), ...(isError ? { is_error: true } : {}) }
}

/** Returns a block or a tool with its mark; undefined = none. */
export function withMark(block: Json, mark: CacheMark | undefined): Json {
  return mark === undefined ? block : { ...block, cache_control: cacheControl(mark) }
}

/** Returns a text block for a turn or the system texts. */
export function textBlock(text: string): Json {
  return { type: 'text', text }
}

/** Returns an ID or another name with allowed characters and length. */
export function wireName(name: string): string {
  return name.slice(0, 64).replace(/[^a-zA-Z0-9_-]/g, '_') || 'unnamed'
}

/** Returns a source of IDs of calls, unique per request: other providers' IDs contain `:` or `|`, are longer, or repeat. */
export function wireCallIds(): (id: string) => string {
  const unique = uniqueNames()
  return id => {
    const clean = wireName(id)
    return unique(clean, count => `${clean.slice(0, 63 - String(count).length)}_${count}`)
  }
}

function documentSource(url: string): Json {
  return { type: 'base64', media_type: 'application/pdf', data: inlineImage(url)?.data ?? '' }
}

export const imageTypes: ReadonlyMap<string, string> = new Map([
  ['image/jpeg', 'image/jpeg'],
  ['image/jpg', 'image/jpeg'],
  ['image/png', 'image/png'],
  ['image/gif', 'image/gif'],
  ['image/webp', 'image/webp'],
])

/**
 * Unsupported image data (SVG, not base64) is sent as a URL, which the API rejects as the client's error. Dropping it
 * would produce an output that ignores the image.
 */
function imageSource(url: string): Json {
  const image = inlineImage(url)
  const media_type = imageTypes.get(image?.kind ?? '')
  if (!image?.isBase64 || media_type === undefined) return { type: 'url', url }
  return { type: 'base64', media_type, data: image.data }
}
