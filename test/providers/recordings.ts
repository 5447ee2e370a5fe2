/**
 * Reads recorded provider traffic (`../shared/fixtures`) if present. Replays its bytes, split at any offsets, through
 * splitter and reader, and merges the parts into one comparable response.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { StreamReader } from '../../src/providers/provider.ts'
import { SseSplitter } from '../../src/providers/sse.ts'
import { type AnswerPart, recordedAnswer } from '../harness/answer-parts.ts'
import { findChannel } from '../harness/events.ts'
import { reportSkipped } from '../harness/needs.ts'

export type RecordedProvider = 'openai' | 'compat' | 'anthropic' | 'gemini'

export type Recording = {
  readonly provider: RecordedProvider
  /** File name without `.response.*`. */
  readonly name: string
  readonly kind: 'stream' | 'json'
  readonly status: number
  readonly headers: Headers
  /** As sent by the provider; for a `.chunks.txt` the framing is restored. */
  readonly bytes: Uint8Array
  readonly text: string
  readonly meta: Readonly<Record<string, unknown>>
  /** The request body, if the source has it. */
  readonly request: unknown
}

const folder = new URL('../../../shared/fixtures/', import.meta.url)

/** Returns all recordings of one provider. Without the shared folder: none, and a skipped test that reports it. */
export function recordings(provider: RecordedProvider): readonly Recording[] {
  const here = new URL(`${provider}/`, folder)
  if (!existsSync(here)) {
    reportSkipped('fixtures', `recorded traffic of ${provider}`)
    return []
  }
  const files = new Set(readdirSync(here))
  return [...files]
    .flatMap(file => {
      const match = /^(.+)\.response\.(sse|chunks\.txt|json)$/.exec(file)
      return match?.[1] === undefined ? [] : [readRecorded(provider, here, files, match[1], file)]
    })
    .sort((item, other) => (item.name + item.kind < other.name + other.kind ? -1 : 1))
}

function readRecorded(
  provider: RecordedProvider,
  here: URL,
  files: ReadonlySet<string>,
  name: string,
  file: string,
): Recording {
  const kind = file.endsWith('.json') ? 'json' : 'stream'
  const raw = readFileSync(new URL(file, here), 'utf8')
  const text = file.endsWith('.chunks.txt') ? framed(provider, raw.split('\n').filter(Boolean)) : raw
  const metaFile = [`${name}.${kind}.meta.json`, `${name}.meta.json`].find(candidate => files.has(candidate))
  const meta = metaFile === undefined ? {} : json<Record<string, unknown>>(here, metaFile)
  const status = meta.status ?? (/error/.test(name) ? Number(/error-(\d{3})/.exec(name)?.[1] ?? 400) : 200)
  return {
    provider,
    name,
    kind,
    status: Number(status),
    headers: new Headers((meta.response_headers ?? {}) as Record<string, string>),
    bytes: new TextEncoder().encode(text),
    text,
    meta,
    request: files.has(`${name}.request.json`) ? json<unknown>(here, `${name}.request.json`) : null,
  }
}

function json<T>(here: URL, file: string): T {
  return JSON.parse(readFileSync(new URL(file, here), 'utf8')) as T
}

/** Restores each provider's framing around plain JSON payloads. */
function framed(provider: RecordedProvider, payloads: readonly string[]): string {
  switch (provider) {
    case 'openai':
    case 'compat':
      return `${payloads.map(payload => `data: ${payload}\n\n`).join('')}data: [DONE]\n\n`
    case 'anthropic':
      return payloads
        .map(payload => `event: ${(JSON.parse(payload) as { type: string }).type}\ndata: ${payload}\n\n`)
        .join('')
    case 'gemini':
      return payloads.map(payload => `data: ${payload}\r\n\r\n`).join('')
  }
}

/** Reads `bytes`, split before each offset of `cuts` (ascending), and merges the parts. */
export function readRecording(reader: StreamReader, bytes: Uint8Array, cuts: readonly number[] = []): AnswerPart[] {
  const { answer: response, drain } = recordedAnswer()
  const splitter = new SseSplitter()
  let from = 0
  for (const to of [...cuts, bytes.length]) {
    splitter.push(bytes.subarray(from, to), reader, response)
    from = to
  }
  splitter.finish(reader, response)
  reader.finish(response)
  return mergeParts(drain())
}

/** Joins adjacent text of one channel and keeps only the last `usage` and `served`. */
export function mergeParts(parts: readonly AnswerPart[]): AnswerPart[] {
  const merged: AnswerPart[] = []
  const last = new Map(parts.map((part, position) => [part.type, position]))
  for (const [position, part] of parts.entries()) {
    if ((part.type === 'usage' || part.type === 'served') && last.get(part.type) !== position) continue
    const before = merged.at(-1)
    const isSame =
      before !== undefined && 'text' in before && 'text' in part && findChannel(before) === findChannel(part)
    if (isSame) merged[merged.length - 1] = { ...before, text: before.text + part.text }
    else merged.push(part)
  }
  return merged
}

/** Returns the offsets to split a stream at: all if short, evenly spread otherwise, at most `most`. */
export function cutOffsets(bytes: Uint8Array, most = 2000): number[] {
  const step = Math.max(1, Math.ceil(bytes.length / most))
  return Array.from({ length: Math.floor(bytes.length / step) + 1 }, (_, position) => position * step)
}

/** Returns every offset: the stream arrives byte by byte. */
export function everyByte(bytes: Uint8Array): number[] {
  return Array.from({ length: Math.max(0, bytes.length - 1) }, (_, position) => position + 1)
}
