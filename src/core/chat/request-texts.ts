/**
 * The one walk over the texts of a request. Moderation, secret detection, digests and token counts read what these functions
 * return, so that no byte reaches a model unread or unweighed. Only image data is left out, which is counted as an image.
 */
import type { ContentPart, Message, PromptDefinition } from './chat.ts'

/** The texts of a JSON value: its keys and strings. */
export type JsonTexts = {
  readonly texts: readonly string[]
  /** Strings that providers write for themselves (signatures, encrypted content), and definitions that are loaded later. */
  readonly opaque: readonly string[]
  /** Credentials of a tool's server, which no model reads. */
  readonly credentials: readonly string[]
  /** Number of keys and values: their quotes and brackets have tokens too. */
  readonly values: number
  readonly images: number
}

/** The values of a body that its messages and tools contain. The walk returns only the others. */
export class ReadValues {
  private readonly texts = new Map<string, number>()
  private readonly objects = new Set<unknown>()

  /** Adds texts, and objects with all that they contain. */
  add(...values: readonly unknown[]): void {
    for (const value of values)
      if (typeof value === 'string') this.texts.set(value, (this.texts.get(value) ?? 0) + 1)
      else if (typeof value === 'object' && value !== null) this.objects.add(value)
  }

  /** Returns whether a value was read. A text counts once per `add`, because its other places have a weight too. */
  take(value: unknown): boolean {
    if (typeof value !== 'string') return this.objects.has(value)
    const left = this.texts.get(value) ?? 0
    if (left > 0) this.texts.set(value, left - 1)
    return left > 0
  }
}

/** Words of the API forms. A text that equals one of them contains no text of a client. */
const wireWords: ReadonlySet<string> = new Set(
  `type role content text user assistant system developer tool name input output message messages id tool_use tool_result
  tool_use_id call_id function function_call function_call_output custom_tool_call custom_tool_call_output input_text output_text
  summary_text reasoning thinking redacted_thinking signature data encrypted_content summary arguments status completed
  in_progress incomplete cache_control ephemeral ttl 5m 1h is_error source media_type base64 image image_url input_image url
  document input_file file_data filename annotations logprobs detail auto low high parameters description input_schema strict
  tools object properties string number integer boolean array items required additionalProperties model phase contents parts
  systemInstruction functionDeclarations functionCall functionResponse args response inlineData mimeType fileData fileUri
  thought thoughtSignature generationConfig thinkingConfig toolConfig functionCallingConfig safetySettings`.split(
    /\s+/,
  ),
)

const opaqueKeys: ReadonlySet<string> = new Set(['signature', 'encrypted_content'])
const credentialKeys: ReadonlySet<string> = new Set(['headers', 'authorization', 'authorization_token'])

type Kind = 'texts' | 'opaque' | 'credentials'
type Place = { readonly value: unknown; readonly kind: Kind; readonly key: string; readonly parent: JsonObject }
type JsonObject = Readonly<Record<string, unknown>>

const root: JsonObject = {}

/**
 * Returns the keys and strings of a JSON value in order, without values in `read`, words of the API forms, and image data in
 * image fields. Iterative, because recursion could overflow the stack for deep values.
 */
export function jsonTexts(value: unknown, read?: ReadValues): JsonTexts {
  const found: Record<Kind, string[]> = { texts: [], opaque: [], credentials: [] }
  const open: Place[] = [{ value, kind: 'texts', key: '', parent: root }]
  let values = 0
  let images = 0
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const { value: own, kind } = place
    values++
    if (read?.take(own) === true) continue
    if (JSON.isRawJSON(own)) found[kind].push(own.rawJSON)
    else if (isObject(own)) values += openMembers(own, kind, open, found)
    else if (Array.isArray(own))
      for (let at = own.length - 1; at >= 0; at--) open.push({ ...place, value: own[at], parent: root })
    else if (typeof own === 'string' && own !== '' && !wireWords.has(own))
      if (isImageField(own, place)) images++
      else {
        // The provider fetches it.
        if (place.key === 'image_url') images++
        for (const text of textsOfString(own, place)) found[kind].push(text)
      }
  }
  return { ...found, values, images }
}

/** Adds the keys of an object, and its values to the open ones. Returns the number of keys. */
function openMembers(own: JsonObject, kind: Kind, open: Place[], found: Record<Kind, string[]>): number {
  const inner = kind === 'texts' && own.defer_loading === true ? 'opaque' : kind
  const members = Object.entries(own)
  for (const [key] of members) if (!wireWords.has(key)) found[inner].push(key)
  for (const [key, value] of members.reverse()) open.push({ value, kind: getKind(own, key, inner), key, parent: own })
  return members.length
}

function getKind(parent: JsonObject, key: string, kind: Kind): Kind {
  if (kind !== 'texts') return kind
  if (opaqueKeys.has(key) || (key === 'data' && parent.type === 'redacted_thinking')) return 'opaque'
  return credentialKeys.has(key) ? 'credentials' : kind
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns whether a string is the data of an image in a field for images. */
function isImageField(text: string, { key, parent }: Place): boolean {
  switch (key) {
    case 'image_url':
    case 'url':
      return isImageData(text)
    case 'data':
      return parent.type === 'base64' && isImageBase64(text)
    case 'result':
      return parent.type === 'image_generation_call' && isImageBase64(text)
    default:
      return false
  }
}

function textsOfString(text: string, { key, parent }: Place): readonly string[] {
  return key === 'data' && parent.type === 'base64' ? decodedTexts(text) : textsOfUrl(text)
}

const imageHead = /^data:image\/[\w.+-]{1,32};base64,/i
/** The first bytes of PNG, JPEG, GIF, WebP, BMP, TIFF, and of HEIF and AVIF. */
const imageBytes = /^(?:\x89PNG|\xff\xd8\xff|GIF8|RIFF[\s\S]{4}WEBP|BM|II\*\0|MM\0\*|[\s\S]{4}ftyp)/
const pdfHead = /^data:application\/pdf;base64,/i
const pdfBytes = '%PDF-'
/** Base64 characters of the 12 first bytes. */
const headCharacters = 16

/** Returns whether a `data:` URL contains an image, by its first bytes. Text that only claims to be an image is a text. */
export function isImageData(url: string): boolean {
  const head = imageHead.exec(url)
  return head !== null && isImageBase64(url.slice(head[0].length, head[0].length + headCharacters))
}

export function isImageBase64(data: string): boolean {
  return imageBytes.test(firstBytes(data))
}

/** The kinds whose first bytes leave no doubt. */
const imageKinds: readonly (readonly [kind: string, bytes: RegExp])[] = [
  ['image/png', /^\x89PNG/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8/],
  ['image/webp', /^RIFF[\s\S]{4}WEBP/],
]

/** Returns the kind of an image in base64 where its media type is another, which providers reject; null = it has the right one. */
export function contradictingKind(mediaType: string, data: string): string | null {
  const first = firstBytes(data)
  const kind = imageKinds.find(([, bytes]) => bytes.test(first))?.[0]
  return kind === undefined || kind === mediaType ? null : kind
}

const labelHead = /^data:([^;,]{0,128});base64,/i

/** Returns the `data:` URL of an image with the media type that its bytes have; other URLs unchanged. */
export function labeledImage(url: string): string {
  const [head = '', mediaType = ''] = labelHead.exec(url) ?? []
  const kind = contradictingKind(mediaType, url.slice(head.length, head.length + headCharacters))
  return head === '' || kind === null ? url : `data:${kind};base64,${url.slice(head.length)}`
}

/** Returns whether a `data:` URL contains a PDF document, by its first bytes. */
export function isPdfData(url: string): boolean {
  const head = pdfHead.exec(url)
  return head !== null && isPdfBase64(url.slice(head[0].length, head[0].length + headCharacters))
}

export function isPdfBase64(data: string): boolean {
  return firstBytes(data).startsWith(pdfBytes)
}

function firstBytes(data: string): string {
  return Buffer.from(data.slice(0, headCharacters), 'base64').toString('latin1')
}

const base64Head = /^data:[^,]{0,512};base64,/i
const strictBase64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Returns a text; of a `data:` URL with base64 the head and the decoded content. */
function textsOfUrl(text: string): readonly string[] {
  const head = base64Head.exec(text)?.[0]
  return head === undefined ? [text] : [head, ...decodedTexts(text.slice(head.length))]
}

/** Returns the text in base64, and the base64 itself if it has other characters, which a decoder skips. */
function decodedTexts(data: string): readonly string[] {
  const bytes = Buffer.from(data, 'base64')
  const text = bytes.toString(isWide(bytes) ? 'utf16le' : 'utf8')
  return strictBase64.test(data) ? [text] : [data, text]
}

/** UTF-16 text of most scripts has a zero in every second byte. */
function isWide(bytes: Uint8Array): boolean {
  const first = bytes.subarray(0, 64)
  return first.length > 1 && first.filter(byte => byte === 0).length * 4 > first.length
}

/** Returns the texts that a message adds to the conversation. */
export function messageTexts(message: Message): readonly string[] {
  switch (message.role) {
    case 'system':
    case 'tool':
      return [message.text]
    case 'user':
      return message.content.flatMap(textsOfPart)
    case 'assistant':
      return [
        message.text ?? '',
        message.reasoning ?? '',
        ...(message.reasoningItems ?? []).map(({ text }) => text),
        ...message.toolCalls.map(call => call.arguments),
      ].filter(text => text !== '')
    default:
      return message satisfies never
  }
}

/** Documents are not read, only their file names, which models see. */
function textsOfPart(part: ContentPart): readonly string[] {
  switch (part.type) {
    case 'text':
      return [part.text]
    case 'image':
      return isImageData(part.url) ? none : textsOfUrl(part.url)
    case 'file':
      return [...(part.name === null ? none : [part.name]), ...(isPdfData(part.url) ? none : textsOfUrl(part.url))]
  }
}

const none: readonly string[] = []

/** Returns all that moderation reads of a part. The credentials of a tool's server are meant for it. */
export function partTexts(part: Message | PromptDefinition): readonly string[] {
  if (part.role === 'definition') return part.kind === 'credentials' ? none : part.texts
  const names = messageNames(part)
  return names.length === 0 ? messageTexts(part) : [...messageTexts(part), names.join('\n')]
}

/** Returns the names, IDs and signatures of a message, which reach a provider beside its texts. */
export function messageNames(message: Message): readonly string[] {
  switch (message.role) {
    case 'system':
      return none
    case 'tool':
      return [message.callId]
    case 'user':
      return message.name === null ? none : [message.name]
    case 'assistant':
      return [
        ...(message.name === null ? none : [message.name]),
        ...message.toolCalls.flatMap(({ id, name, signature }) => [
          id,
          name,
          ...(signature === null ? none : [signature]),
        ]),
      ]
  }
}
