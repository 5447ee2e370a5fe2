/** Parses the contents of a Gemini request into messages. A call without an ID gets one from its place, so that it stays the same in later turns. */
import { type Static, Type } from '@sinclair/typebox'
import type { ContentPart, Message, ReasoningItem, ToolCall } from '../../core/chat/chat.ts'
import { isImageBase64, isPdfBase64, labeledImage, type ReadValues } from '../../core/chat/request-texts.ts'
import { bodyText, calledName, callId } from '../../core/request/part-schemas.ts'
import { forwardableAddress } from '../../core/validation/public-address.ts'
import { invalidField, nullable, oneOf } from '../../core/validation/validate.ts'
import { anyObject, type Fields, isFields, open } from '../foreign-objects.ts'
import { isSealed, type ReasoningOpener } from '../reasoning-seal.ts'

const media = {
  inlineData: nullable(Type.Object({ mimeType: Type.String({ maxLength: 128 }), data: bodyText }, open)),
  fileData: nullable(Type.Object({ mimeType: nullable(Type.String({ maxLength: 128 })), fileUri: bodyText }, open)),
}
const part = Type.Object(
  {
    text: nullable(bodyText),
    thought: nullable(Type.Boolean()),
    thoughtSignature: nullable(bodyText),
    ...media,
    functionCall: nullable(Type.Object({ id: nullable(callId), name: calledName, args: nullable(anyObject) }, open)),
    functionResponse: nullable(
      Type.Object(
        {
          id: nullable(callId),
          name: calledName,
          response: nullable(anyObject),
          parts: nullable(Type.Array(Type.Object(media, open))),
        },
        open,
      ),
    ),
  },
  open,
)
/** Google's own examples also send one object in place of a list. */
export const content = Type.Object(
  { role: nullable(oneOf(['user', 'model', 'function'])), parts: Type.Optional(Type.Union([Type.Array(part), part])) },
  open,
)

export type GeminiContent = Static<typeof content>
type Part = Static<typeof part>

export function toList<T>(value: T | readonly T[] | null | undefined): readonly T[] {
  if (value == null) return []
  return Array.isArray(value) ? value : [value as T]
}

type Conversation = {
  readonly messages: readonly Message[]
  /** Places of parts with reasoning that the gateway sealed. */
  readonly sealed: readonly (readonly [content: number, part: number])[]
  /** Gemini could not read it as it is written, or would read more than was counted. */
  readonly isInexact: boolean
}

/** State of one parse. */
type Scan = {
  readonly opener: ReasoningOpener
  readonly values: ReadValues
  readonly sealed: [number, number][]
  /** Calls of the last model turn without a result. */
  waiting: ToolCall[]
  answered: ToolCall[]
  isInexact: boolean
}

/** Returns the messages of a request. Throws `invalid_request` with the part at fault. */
export function readContents(
  {
    contents,
    systemInstruction,
  }: { readonly contents: readonly GeminiContent[]; readonly systemInstruction: GeminiContent | null },
  opener: ReasoningOpener,
  values: ReadValues,
): Conversation {
  const isInexact = contents.some(({ role }) => role === 'function')
  const scan: Scan = { opener, values, sealed: [], waiting: [], answered: [], isInexact }
  const system = contentTexts(systemInstruction, 'systemInstruction').filter(text => text !== '')
  values.add(...system)
  const messages: Message[] = system.length === 0 ? [] : [{ role: 'system', text: system.join('\n\n') }]
  for (let at = 0; at < contents.length; ) {
    // Google's client keeps each frame of a stream as a turn of its own.
    const end = contents.findIndex(({ role }, index) => index >= at && role !== 'model')
    const model = contents.slice(at, end === -1 ? contents.length : end)
    if (model.length > 0) messages.push(modelTurn(model, at, scan))
    at += model.length
    const turn = contents[at]
    if (turn !== undefined) messages.push(...userTurn(turn, at++, scan))
  }
  return { messages, sealed: scan.sealed, isInexact: scan.isInexact }
}

/** What a part holds. */
const kinds = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse'] as const

/** Returns the parts of a content. As at Google, each holds one thing: a second one would reach a model unread. */
function getParts(content: GeminiContent | null, place: string): readonly Part[] {
  const parts = toList(content?.parts)
  for (const [at, item] of parts.entries()) {
    let held = 0
    for (const kind of kinds) if (item[kind] != null) held++
    if (held > 1) throw invalidField(`${place}.parts.${at}`, `must have only one of ${kinds.join(', ')}`)
  }
  return parts
}

/** Returns the texts of a content. Throws `unsupported_parameter` if it has another part. */
export function contentTexts(content: GeminiContent | null, place: string): readonly string[] {
  return getParts(content, place).map(({ text }, at) => {
    if (typeof text === 'string') return text
    throw invalidField(`${place}.parts.${at}`, 'must be a part with `text`', 'unsupported_parameter')
  })
}

/** Puts results first, as other providers require. Their images and documents follow in the user's turn. */
function userTurn(content: GeminiContent, turn: number, scan: Scan): readonly Message[] {
  const results: Message[] = []
  const attached: ContentPart[] = []
  const said: ContentPart[] = []
  for (const [at, item] of getParts(content, `contents.${turn}`).entries()) {
    const place = `contents.${turn}.parts.${at}`
    const { functionResponse: result, text } = item
    if (result != null) {
      // gemini-cli sends each result twice in a resumed conversation.
      const isKnown = ({ id }: ToolCall) => id === result.id
      if (scan.answered.some(isKnown) && !scan.waiting.some(isKnown)) continue
      const { id: callId } = findCall(result, place, scan)
      scan.values.add(callId, result.name, result.response)
      results.push({ role: 'tool', callId, ...resultText(result.response ?? {}) })
      const files = toList(result.parts).map((file, index) =>
        filePart(file, `${place}.functionResponse.parts.${index}`, scan),
      )
      if (files.length > 0)
        attached.push({ type: 'text', text: `From the result of the tool call ${callId}:` }, ...files)
    } else if (typeof text === 'string') {
      scan.values.add(text)
      said.push({ type: 'text', text })
    } else said.push(filePart(item, place, scan))
  }
  const own = [...attached, ...said]
  return own.length === 0 && results.length > 0 ? results : [...results, { role: 'user', content: own, name: null }]
}

/** Returns the call of a result, by its ID or else the first one of its name. Throws if there is none, as Google does. */
function findCall(result: { readonly id?: string | null; readonly name: string }, place: string, scan: Scan) {
  const { waiting } = scan
  const call = waiting.find(({ id }) => id === result.id) ?? waiting.find(({ name }) => name === result.name)
  if (call === undefined)
    throw invalidField(`${place}.functionResponse`, 'must follow the turn with its `functionCall`, and answer it once')
  scan.waiting = waiting.filter(item => item !== call)
  scan.answered.push(call)
  return call
}

/** Members in which clients wrap a result that is a text. */
const wraps = ['output', 'result', 'content', 'error']

function resultText(response: Fields): { readonly text: string; readonly isError?: boolean } {
  const [[name = '', value] = [], ...others] = Object.entries(response)
  if (others.length > 0 || typeof value !== 'string' || !wraps.includes(name)) return { text: JSON.stringify(response) }
  if (name !== 'error') return { text: value }
  return { text: /^\W*error/i.test(value) ? value : `Error: ${value}`, isError: true }
}

/** Hosts of stored files, which may be the operator's, and of videos, whose length is unknown. */
const storeHosts = /(?:^|\.)(?:googleapis\.com|youtube(?:-nocookie)?\.com|youtu\.be)\.?$/

function filePart(item: Pick<Part, 'inlineData' | 'fileData'>, place: string, scan: Scan): ContentPart {
  const { inlineData, fileData } = item
  const { values } = scan
  if (inlineData != null) {
    const { mimeType, data } = inlineData
    const kind = mimeType.toLowerCase()
    if (kind.startsWith('image/')) {
      if (isImageBase64(data)) values.add(data)
      return { type: 'image', url: labeledImage(`data:${mimeType};base64,${data}`), detail: null }
    }
    if (kind === 'application/pdf' && isPdfBase64(data)) {
      values.add(data)
      return { type: 'file', url: `data:application/pdf;base64,${data}`, name: null }
    }
    throw invalidField(`${place}.inlineData`, 'must be an image or a PDF document', 'unsupported_parameter')
  }
  if (fileData == null) {
    const known = 'must have `text`, `inlineData`, `fileData`, `functionCall` or `functionResponse`'
    throw invalidField(place, known, 'unsupported_parameter')
  }
  const url = forwardableAddress(fileData.fileUri)
  const isImage = /^image\//i.test(fileData.mimeType ?? 'image/')
  // The length of a document is unknown too. Without a kind the provider would look for itself.
  scan.isInexact ||= fileData.mimeType == null
  if (url !== null && isImage && !/^data:/i.test(url) && !storeHosts.test(new URL(url).hostname))
    return { type: 'image', url, detail: null }
  const rule = 'must be the public https URL of an image: files are not stored here. Send the content in `inlineData`'
  throw invalidField(`${place}.fileData`, rule, 'unsupported_parameter')
}

function modelTurn(turns: readonly GeminiContent[], first: number, scan: Scan): Message {
  const { values } = scan
  const texts: string[] = []
  const thoughts: string[] = []
  const items: ReasoningItem[] = []
  const calls: ToolCall[] = []
  const places = turns.flatMap((turn, offset) =>
    getParts(turn, `contents.${first + offset}`).map((item, at) => [first + offset, at, item] as const),
  )
  for (const [turn, at, item] of places) {
    const { text, thought, thoughtSignature: signature, functionCall: call } = item
    const opened = signature == null ? null : openSignature(signature, scan, [turn, at])
    if (opened !== null) items.push(...opened)
    const own = opened === null ? (signature ?? null) : null
    if (own !== null) values.add(own)
    if (call != null) {
      const id = call.id ?? `call_${turn}_${at}`
      calls.push({ id, name: call.name, arguments: JSON.stringify(call.args ?? {}), signature: own })
      values.add(id, call.name, call.args)
    } else if (typeof text === 'string') {
      values.add(text)
      if (thought === true) thoughts.push(text)
      else {
        texts.push(text)
        if (own !== null) items.push({ family: 'google', kind: 'signature', text: '', data: own, id: null })
      }
    } else refusePart(`contents.${turn}.parts.${at}`)
  }
  scan.waiting = calls
  scan.answered = []
  const proven = items.filter(({ data }) => data !== '')
  // Reasoning without a proof is in its item too, which also returns from a client that drops thoughts.
  const unproven = items.filter(({ data, text }) => data === '' && text !== '').map(({ text }) => text)
  return {
    role: 'assistant',
    text: texts.length === 0 ? null : texts.join(''),
    reasoning: (unproven.length > 0 ? unproven : proven.length > 0 ? [] : thoughts).join('\n') || null,
    ...(proven.length === 0 ? {} : { reasoningItems: proven }),
    toolCalls: calls,
    name: null,
  }
}

function refusePart(place: string): never {
  throw invalidField(place, 'must have `text` or `functionCall` in a turn of the model', 'unsupported_parameter')
}

/** One signature carries all reasoning before its part, in base64, which clients in Python require. */
const separator = '\n'

/** Returns the signature that carries sealed reasoning. */
export function sealedSignature(sealed: readonly string[]): string {
  return Buffer.from(sealed.join(separator)).toString('base64')
}

/** Returns the reasoning that the gateway sealed; null = the signature is Google's. */
function openSignature(
  signature: string,
  { opener: { seal, accountId }, sealed, values }: Scan,
  place: [number, number],
): readonly ReasoningItem[] | null {
  const text = Buffer.from(signature, 'base64').toString()
  if (!isSealed(text)) return null
  sealed.push(place)
  values.add(signature)
  return text.split(separator).flatMap(item => seal.open(accountId, item) ?? [])
}

/** Members whose names the client chooses. */
const ownNames: ReadonlySet<string> = new Set(
  'args response parameters parametersJsonSchema responseSchema responseJsonSchema labels'.split(' '),
)

/** Returns a body with field names as in JSON: Google also reads those of its protocol buffers (`inline_data`). `kept` = names to leave. */
export function withJsonNames(value: unknown, kept: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) {
    const items = value.map(item => withJsonNames(item, none))
    return items.some((item, at) => item !== value[at]) ? items : value
  }
  if (!isFields(value) || JSON.isRawJSON(value)) return value
  let isChanged = false
  const members = Object.entries(value).map(([key, inner]) => {
    const name = kept.has(key) ? key : key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    const given = kept.has(key) || ownNames.has(name) ? inner : withJsonNames(inner, none)
    isChanged ||= name !== key || given !== inner
    return [name, given] as const
  })
  return isChanged ? Object.fromEntries(members) : value
}

const none: ReadonlySet<string> = new Set()
