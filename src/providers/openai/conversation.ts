import type { CacheMark, ContentPart, ImageDetail, Message, ToolCall } from '../../core/chat/chat.ts'
import type { ParameterRules } from '../../core/models/models.ts'
import { type ConversationStep, getSteps, placeholderTexts, type ToolExchange } from '../conversation-steps.ts'
import type { Json } from '../json.ts'
import { cacheControl } from '../marked-prompt.ts'
import { detailsFor } from './reasoning.ts'

/** An instruction to add to the messages for the response format, or for a call. */
export type Instruction = { readonly text: string; readonly unlessJsonIsNamed: boolean }

type Writing = {
  readonly rules: ParameterRules
  readonly official: boolean
  readonly dialect: Dialect
  readonly instructions: readonly Instruction[]
  /** True if the server reads marks, which then keep the parts of a message apart. */
  readonly marksCache: boolean
}

/** Returns the conversation in the wire format. */
export function messagesFor(messages: readonly Message[], writing: Writing): readonly Json[] {
  const toolId = toolIdsFor(writing.dialect)
  const wire: Json[] = []
  for (const step of getSteps(messages)) wire.push(...messageFor(step, writing, toolId))
  return writing.instructions.reduce<readonly Json[]>(
    (all, instruction) => withInstruction(all, messages, instruction, writing.rules),
    wire,
  )
}

function messageFor(step: ConversationStep, writing: Writing, toolId: (id: string) => string): readonly Json[] {
  switch (step.role) {
    case 'system':
      return [{ role: writing.rules.systemRole, content: textContent(step.text, step.cache, writing) }]
    case 'user':
      return [{ role: 'user', content: userContent(step.content, writing), name: nameFor(step.name, writing) }]
    case 'assistant': {
      const { reasoning, reasoningItems, exchanges, name } = step
      const text = step.text ? textContent(step.text, step.cache, writing) : step.text
      const replayed = reasoning !== null && !writing.official && writing.rules.passExtras
      const calls = exchanges.map(({ call }) => toolCallFor(call, writing.dialect, toolId))
      const message = {
        role: 'assistant',
        content: calls.length > 0 ? text || null : (text ?? ''),
        ...(replayed && Object.fromEntries(writing.dialect.reasoningFields.map(field => [field, reasoning]))),
        reasoning_details: writing.dialect.reasoningDetails ? detailsFor(reasoningItems) : undefined,
        tool_calls: calls.length > 0 ? calls : undefined,
        name: nameFor(name, writing),
      }
      return [message, ...exchanges.map(exchange => resultFor(exchange, writing, toolId))]
    }
  }
}

function toolCallFor(call: ToolCall, { signatures }: Dialect, toolId: (id: string) => string): Json {
  const signed = signatures && call.signature !== null
  return {
    id: toolId(call.id),
    type: 'function',
    // Some servers parse the history's arguments, and an empty string is not JSON.
    function: { name: call.name, arguments: call.arguments || '{}' },
    extra_content: signed ? { google: { thought_signature: call.signature } } : undefined,
  }
}

function resultFor({ call, result, cache }: ToolExchange, writing: Writing, toolId: (id: string) => string): Json {
  const content = textContent(result ?? placeholderTexts.missingResult, cache, writing)
  return { role: 'tool', tool_call_id: toolId(call.id), content }
}

/** A mark needs a part, and a part needs a text. */
function textContent(text: string, cache: CacheMark | undefined, writing: Writing): string | readonly Json[] {
  const mark = text === '' ? undefined : markFor(cache, writing)
  return mark === undefined ? text : [{ type: 'text', text, cache_control: mark }]
}

function markFor(cache: CacheMark | undefined, { marksCache }: Writing): Json | undefined {
  return cache !== undefined && marksCache ? cacheControl(cache) : undefined
}

/** Many compatible servers accept only plain text, so text parts are joined for them. */
function userContent(content: Extract<Message, { role: 'user' }>['content'], writing: Writing): unknown {
  const { official, marksCache } = writing
  const [first] = content
  if (first?.type === 'text' && content.length === 1) return textContent(first.text, first.cache, writing)
  const texts = content.flatMap(part => (part.type === 'text' ? [part.text] : []))
  if (texts.length === content.length && ((!official && !marksCache) || texts.length < 2)) return texts.join('\n')
  return content.map(part => wirePart(part, writing))
}

function wirePart(part: ContentPart, writing: Writing): Json {
  const cache_control = markFor(part.cache, writing)
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text, cache_control: part.text === '' ? undefined : cache_control }
    case 'image':
      return {
        type: 'image_url',
        image_url: { url: part.url, detail: detailFor(part.detail, writing.official) },
        cache_control,
      }
    case 'file':
      // OpenAI answers 400 without a name.
      return { type: 'file', file: { filename: part.name || 'document.pdf', file_data: part.url }, cache_control }
  }
}

/** Other servers do not know the original size. */
function detailFor(detail: ImageDetail | null, official: boolean): ImageDetail | undefined {
  return detail === 'original' && !official ? 'high' : (detail ?? undefined)
}

/** Omits a name that violates OpenAI's pattern, which would fail the whole request. */
function nameFor(name: string | null, { official, rules }: Writing): string | undefined {
  return name !== null && (official || rules.passExtras) && takenName.test(name) ? name : undefined
}

const takenName = /^[^\s<|\\/>]{1,64}$/

/** Renames IDs that the server would reject, consistently within the request. */
export function toolIdsFor({ toolId }: Dialect): (id: string) => string {
  const renamed = new Map<string, string>()
  return id => {
    if (toolId.test(id)) return id
    const known = renamed.get(id) ?? `call${String(renamed.size + 1).padStart(5, '0')}`
    renamed.set(id, known)
    return known
  }
}

/** Adds the instruction to the first system text if there is one: some chat templates accept only one, at the start. */
function withInstruction(
  wire: readonly Json[],
  messages: readonly Message[],
  instruction: Instruction,
  { systemRole: role }: ParameterRules,
): readonly Json[] {
  if (instruction.unlessJsonIsNamed && messages.some(namesJson)) return wire
  const [first, ...rest] = wire
  if (first?.role !== role) return [{ role, content: instruction.text }, ...wire]
  const { content } = first
  const added = Array.isArray(content)
    ? [...content, { type: 'text', text: instruction.text }]
    : `${content}\n\n${instruction.text}`
  return [{ ...first, content: added }, ...rest]
}

export function namesJson(message: Message): boolean {
  const texts =
    message.role === 'user'
      ? message.content.map(part => (part.type === 'text' ? part.text : ''))
      : [message.text ?? '']
  return texts.some(text => /json/i.test(text))
}

/** Deviations of a known host. */
export type Dialect = {
  /** Tool call IDs that it accepts; others are renamed within the request. */
  readonly toolId: RegExp
  readonly seedField: 'seed' | 'random_seed'
  keyHeader(apiKey: string): Readonly<Record<string, string>>
  /** Fields in which it reads the reasoning text of earlier turns. */
  readonly reasoningFields: readonly ('reasoning' | 'reasoning_content')[]
  /** True if it reads `reasoning_details`. */
  readonly reasoningDetails: boolean
  /** True if it caches the input of some models at marks in its parts. */
  readonly cacheMarks: boolean
  /** True if it requires the thought signature of each of its calls. */
  readonly signatures: boolean
  /** True if it pads each event of a stream unless it is asked not to; no two events then have the same beginning and end. */
  readonly padsEvents: boolean
}

const plain: Dialect = {
  toolId: /^/,
  seedField: 'seed',
  keyHeader: apiKey => ({ authorization: `Bearer ${apiKey}` }),
  reasoningFields: ['reasoning_content'],
  reasoningDetails: false,
  cacheMarks: false,
  signatures: false,
  padsEvents: false,
}
const official: Dialect = { ...plain, toolId: /^.{1,40}$/s }
const openai: Dialect = { ...official, padsEvents: true }
const reasoning = { ...plain, reasoningFields: ['reasoning'] } satisfies Dialect
const others: readonly (Dialect & { readonly host: RegExp; readonly name?: DialectName })[] = [
  { ...plain, name: 'mistral', host: /(?:^|\.)mistral\.ai$/, toolId: /^[A-Za-z0-9]{9}$/, seedField: 'random_seed' },
  { ...plain, host: /\.azure\.com$/, keyHeader: apiKey => ({ 'api-key': apiKey }) },
  { ...plain, host: /\.googleapis\.com$/, signatures: true },
  { ...reasoning, name: 'openrouter', host: /(?:^|\.)openrouter\.ai$/, reasoningDetails: true, cacheMarks: true },
  { ...reasoning, name: 'groq', host: /(?:^|\.)groq\.com$/ },
  { ...reasoning, name: 'cerebras', host: /(?:^|\.)cerebras\.ai$/ },
  { ...reasoning, name: 'ollama', host: /^ollama$/ },
  // Newer releases read the first, chat templates of models the second.
  { ...plain, name: 'vllm', host: /^vllm$/, reasoningFields: ['reasoning', 'reasoning_content'] },
]

/** Names for servers under any base URL. */
type DialectName = 'mistral' | 'openrouter' | 'groq' | 'cerebras' | 'ollama' | 'vllm'

/** Returns the dialect of OpenAI itself, or of the compatible server with that name or on that host. */
export function getDialect(hostname: string, isOfficial: boolean, named?: string): Dialect {
  // Another host with OpenAI's models may refuse what it does not know.
  if (isOfficial) return hostname === 'api.openai.com' ? openai : official
  return others.find(({ host, name }) => (named === undefined ? host.test(hostname) : name === named)) ?? plain
}
