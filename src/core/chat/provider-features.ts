/**
 * The one table of fields, tools, content and beta headers that a client's own body may bring to a provider, with what each can
 * add. A provider charges for more than the body shows: pages, search results, rounds of tools. The gateway drops or rejects other
 * ones by name, so that nothing unknown is charged.
 */

import { invalidField } from '../validation/validate.ts'
import type { ChatRequest, SourceBody } from './chat.ts'
import type { ProviderFields } from './chat-events.ts'
import { isTokenPricedTool } from './tool-definitions.ts'

type Dialect = Exclude<SourceBody['dialect'], 'decisions'>
type Fields = Readonly<Record<string, unknown>>

/**
 * Input that a feature can add. `none`: only what its own text shows. `window`: up to the model's context window, because the
 * provider reads what a third party sends, or reads the conversation again.
 */
type Bound = 'none' | 'window'

const bounded = (bound: Bound, names: string): readonly (readonly [string, Bound])[] =>
  names.split(/\s+/).map(name => [name, bound] as const)

/** Fields of a body. `context_management` can summarize the conversation, which reads it once more. */
const fields: Readonly<Record<Dialect, ReadonlyMap<string, Bound>>> = {
  messages: new Map([
    ...bounded('none', 'model messages system max_tokens stream stop_sequences temperature top_p top_k thinking tools'),
    ...bounded('none', 'output_config output_format tool_choice metadata service_tier cache_control inference_geo'),
    ...bounded('window', 'context_management mcp_servers'),
  ]),
  responses: new Map([
    ...bounded('none', 'model input instructions tools tool_choice parallel_tool_calls include max_output_tokens'),
    ...bounded('none', 'temperature top_p top_logprobs text reasoning store stream stream_options metadata user'),
    ...bounded('none', 'safety_identifier service_tier prompt_cache_key prompt_cache_retention prompt_cache_options'),
    ...bounded('none', 'moderation truncation max_tool_calls client_metadata'),
    ...bounded('window', 'context_management'),
  ]),
  gemini: new Map(bounded('none', 'contents systemInstruction tools toolConfig generationConfig safetySettings')),
}

/**
 * Types of items and blocks of a conversation. A summary reads the conversation once more. Not here: those that declare tools or
 * run programs at the provider, and those that name files or containers, which are the operator's.
 */
const parts: Readonly<Record<Dialect, ReadonlyMap<string, Bound>>> = {
  messages: new Map([
    ...bounded('none', 'text image document search_result thinking redacted_thinking compaction fallback'),
    ...bounded('none', 'tool_use tool_result tool_reference server_tool_use web_search_tool_result'),
    ...bounded('none', 'web_fetch_tool_result code_execution_tool_result bash_code_execution_tool_result'),
    ...bounded('none', 'text_editor_code_execution_tool_result tool_search_tool_result advisor_tool_result'),
    ...bounded('none', 'mcp_tool_use mcp_tool_result mcp_tool_listing'),
  ]),
  responses: new Map([
    ...bounded('none', 'message reasoning compaction compaction_summary agent_message agent_reasoning item_reference'),
    ...bounded('none', 'function_call function_call_output custom_tool_call custom_tool_call_output'),
    ...bounded('none', 'tool_search_call tool_search_output additional_tools web_search_call file_search_call'),
    ...bounded('none', 'image_generation_call computer_call computer_call_output local_shell_call'),
    ...bounded('none', 'local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output'),
    ...bounded('none', 'mcp_list_tools mcp_call mcp_approval_request mcp_approval_response'),
    ...bounded('window', 'compaction_trigger context_compaction'),
  ]),
  // Its parts have no types.
  gemini: new Map(),
}

/** The values without a price factor that the catalog does not know. */
const values: Readonly<Record<Dialect, Readonly<Record<string, readonly unknown[]>>>> = {
  messages: { service_tier: ['auto', 'standard_only'], inference_geo: ['global'] },
  // OpenAI's tiers have prices of their own: `isPricedTier` (`pricing.ts`).
  responses: {},
  gemini: {},
}

/** Returns the service tier that a request names; null = none, so that the operator's settings at the provider decide. */
export function requestedTier({ extras: { service_tier: tier } }: Pick<ChatRequest, 'extras'>): string | null {
  return typeof tier === 'string' ? chosenTier(tier) : null
}

/** Returns a tier that a provider names; null = it leaves the choice open. */
export function chosenTier(tier: string): string | null {
  return tier === 'auto' ? null : tier
}

/** The tiers of OpenAI. */
const openAiTiers: ReadonlySet<string | null> = new Set(['auto', 'default', 'flex', 'scale', 'priority', 'fast'])

/** Returns the tier that clients of OpenAI's forms are shown; null = none. Client libraries reject a tier that they do not know. */
export function shownTier(fields: ProviderFields | undefined): string | null {
  return fields?.form === 'openai' && openAiTiers.has(fields.serviceTier) ? fields.serviceTier : null
}

/** Tools of the Messages form by the start of their type. The client runs the first ones, Anthropic the others. */
const messagesTools: ReadonlyMap<string, Bound> = new Map([
  ...bounded('none', 'bash text_editor memory computer computer_toolset browser_toolset'),
  ...bounded('window', 'web_search web_fetch code_execution mcp_toolset tool_search_tool_regex tool_search_tool_bm25'),
])

/** Beta headers by their start. Not here: `context-1m`, `fast-mode` and `output-300k`, which have other prices, and files. */
const betas: ReadonlyMap<string, Bound> = new Map([
  ...bounded(
    'none',
    'claude-code interleaved-thinking thinking redact-thinking context-management prompt-caching effort',
  ),
  ...bounded('none', 'extended-cache-ttl mid-conversation fine-grained-tool-streaming token-efficient-tools'),
  ...bounded('none', 'structured-outputs tool-examples advanced-tool-use computer-use pdfs token-counting output-128k'),
  ...bounded('none', 'search-results tool-search-tool web-fetch web-search code-execution mcp-client'),
  ...bounded('window', 'compact'),
])

/** Returns whether a field of a client's own body may go to a provider of the same form. */
export function isSendableField(dialect: Dialect, name: string, value: unknown): boolean {
  const allowed = values[dialect][name]
  return fields[dialect].has(name) && (value === null || allowed === undefined || allowed.includes(value))
}

/** Returns the fields that may go to a provider of the same form. */
export function sendableFields(dialect: Dialect, body: Fields): Fields {
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => isSendableField(dialect, name, value)))
}

/** Throws `unsupported_parameter` for an item or a block whose type is not in the table; a missing type is that of a message. */
export function refuseUnknownPart(dialect: Dialect, type: unknown, place: string): void {
  const name = type ?? 'message'
  if (typeof name === 'string' && parts[dialect].has(name)) return
  const named = typeof name === 'string' && /^[\w.-]{1,64}$/.test(name) ? `"${name}"` : 'This'
  const rule = `must be a known type: ${named} is one whose cost the gateway cannot bound. Remove it`
  throw invalidField(`${place}.type`, rule, 'unsupported_parameter')
}

/** Returns whether Anthropic's tools have this type; `custom` and a missing type are functions of the client. */
export function isMessagesTool(type: string): boolean {
  return messagesTools.has(getFamily(type))
}

/** Returns the values of a beta header that may be sent, and the others. */
export function sortBetas(header: string): { readonly sent: readonly string[]; readonly dropped: readonly string[] } {
  const names = header
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
  const isKnown = (name: string) => findBeta(name) !== undefined
  return { sent: names.filter(isKnown), dropped: names.filter(name => !isKnown(name)) }
}

function findBeta(name: string): Bound | undefined {
  for (const [start, bound] of betas) if (name === start || name.startsWith(`${start}-`)) return bound
  return undefined
}

/** Returns a type without its version: `web_search` of `web_search_20250305`. */
function getFamily(type: string): string {
  return type.replace(/_\d{8}$/, '')
}

/**
 * Returns the input tokens that a provider may add beyond the body, at most `window`: fetched pages, search results, documents
 * whose pages are unknown, and rounds of tools that run at the provider.
 */
export function highestAddedInput(
  { messages, source }: Pick<ChatRequest, 'messages' | 'source'>,
  window: number,
): number {
  const hasDocument = messages.some(
    message => message.role === 'user' && message.content.some(({ type }) => type === 'file'),
  )
  if (hasDocument) return window
  return source === null ? 0 : Math.min(addedBySource(source), window)
}

const boundsOfSources = new WeakMap<SourceBody, number>()

function addedBySource(source: SourceBody): number {
  let bound = boundsOfSources.get(source)
  if (bound === undefined) {
    bound = measuredBound(source)
    boundsOfSources.set(source, bound)
  }
  return bound
}

const unbounded = Number.POSITIVE_INFINITY

function measuredBound({ dialect, fields: body, headers }: SourceBody): number {
  // Decisions have no tools.
  if (dialect === 'decisions') return 0
  for (const [name, value] of Object.entries(body))
    if (value !== null && fields[dialect].get(name) === 'window' && hasContent(value)) return unbounded
  for (const beta of sortBetas(headers['anthropic-beta'] ?? '').sent) if (findBeta(beta) === 'window') return unbounded
  const tools: readonly unknown[] = Array.isArray(body.tools) ? body.tools : []
  let sum = 0
  for (const tool of tools) if (isFields(tool)) sum += dialect === 'messages' ? addedByTool(tool) : addedByMcp(tool)
  if (dialect === 'messages') return sum + (readsFile(body.messages) ? unbounded : 0)
  return sum + (readsFile(body.input) || readsAgain(body.input) ? unbounded : 0)
}

function readsAgain(input: unknown): boolean {
  const items: readonly unknown[] = Array.isArray(input) ? input : []
  return items.some(item => isFields(item) && parts.responses.get(String(item.type)) === 'window')
}

/** An empty list of edits or servers adds nothing. */
function hasContent(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return !isFields(value) || Object.values(value).some(inner => !Array.isArray(inner) || inner.length > 0)
}

function addedByTool({ type, max_uses: uses, max_content_tokens: tokens }: Fields): number {
  if (typeof type !== 'string' || messagesTools.get(getFamily(type)) !== 'window') return 0
  // Only fetched pages have a bound, and only if the client sets both.
  const isBounded = type.startsWith('web_fetch') && typeof uses === 'number' && typeof tokens === 'number'
  return isBounded ? Math.max(0, uses) * Math.max(0, tokens) * pageMargin : unbounded
}

/** Anthropic's count of a page is approximate, and a later round reads the page again. */
const pageMargin = 2

function addedByMcp(tool: Fields): number {
  return isTokenPricedTool(tool) && tool.type === 'mcp' ? unbounded : 0
}

/** Returns whether a conversation has a document by URL, whose pages the provider reads. Iterative, because it may be deep. */
function readsFile(conversation: unknown): boolean {
  const open: unknown[] = [conversation]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (Array.isArray(value)) for (const inner of value) open.push(inner ?? null)
    if (!isFields(value)) continue
    if (value.type === 'input_file') return true
    if (
      value.type === 'document' &&
      isFields(value.source) &&
      (value.source.type === 'url' || value.source.type === 'base64')
    )
      return true
    for (const name of containers) if (name in value) open.push(value[name] ?? null)
  }
  return false
}

/** Fields that hold content of a message or of a tool's result. */
const containers = ['content', 'output', 'source']

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Fields that the gateway sets or reads itself; no allow list may pass the client's value on. */
export const ownFields: ReadonlySet<string> = new Set(
  `model messages stream stream_options n max_tokens max_completion_tokens max_output_tokens temperature top_p
  presence_penalty frequency_penalty seed random_seed logit_bias logprobs top_logprobs stop tools tool_choice
  parallel_tool_calls functions function_call response_format reasoning_effort user metadata __proto__`.split(/\s+/),
)

/** Decides which parts the gateway marks for a provider that caches only marked input. Writing to a cache costs extra. */

/** `system`: tools and system text. `conversation`: also the messages so far. */
export type AutomaticCacheMarks = 'system' | 'conversation'

/** Providers cache from 1,024 tokens on; fewer characters cannot be that many. */
export const leastCachedCharacters = 3_000

/**
 * Returns the marks of a request without marks of the client's own; null = none. An agent sends the same beginning again
 * within seconds: its tools, or a tool result at the end, show it. Otherwise only a beginning that was seen within the
 * last minutes is worth the cost of writing. `seen` = which part was.
 */
export function automaticCacheMarks(
  request: ChatRequest,
  seen: AutomaticCacheMarks | null,
): AutomaticCacheMarks | null {
  if (request.bodyCharacters < leastCachedCharacters || hasOwnMarks(request)) return null
  const isAgent = request.messages.at(-1)?.role === 'tool' || (request.tools.length > 0 && mayAnswerInText(request))
  return isAgent ? 'conversation' : seen
}

/** A forced call is one question with one answer. */
function mayAnswerInText({ toolChoice }: ChatRequest): boolean {
  return toolChoice === null || toolChoice === 'auto'
}

/** Returns true if the client marked some part itself. */
function hasOwnMarks({ messages, tools, source }: ChatRequest): boolean {
  return (
    tools.some(({ cache }) => cache !== undefined) ||
    messages.some(message =>
      message.role === 'user' ? message.content.some(({ cache }) => cache !== undefined) : message.cache !== undefined,
    ) ||
    (source?.dialect === 'messages' && source.text.includes('"cache_control"'))
  )
}
