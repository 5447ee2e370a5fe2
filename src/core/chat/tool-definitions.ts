/**
 * Parts of a request beside the conversation: definitions, settings, and what only the client's own body contains. They reach a
 * model like a prompt, so moderation, secret detection and token counts read them like one.
 */
import type { ChatRequest, PromptDefinition, ToolChoice } from './chat.ts'
import { type JsonTexts, jsonTexts, type ReadValues } from './request-texts.ts'

type Defined = Pick<ChatRequest, 'tools' | 'responseFormat'> &
  Partial<Pick<ChatRequest, 'extras' | 'source' | 'stop' | 'endUser' | 'logitBias'>>

/** Returns all of these parts of a request: each tool, the response schema, settings with text, and unread parts of its body. */
export function collectDefinitions(request: Defined): readonly PromptDefinition[] {
  const { tools, responseFormat, source } = request
  const settings = textualSettings(request)
  const unread = source?.unread ?? none
  if (tools.length + settings.length + unread.length === 0 && responseFormat.type !== 'json_schema') return none
  const found = [
    ...tools.map(({ name, description, parameters }) => definition('tools', name, description, parameters)),
    ...unread,
    ...settings.flatMap(([param, value]) => getParts(param, 'definition', jsonTexts(value))),
  ]
  if (responseFormat.type !== 'json_schema') return found
  const { name, description, schema } = responseFormat
  return [...found, definition('response_format', name, description, schema)]
}

/** Fields of a body that hold the conversation. */
const conversationFields: ReadonlySet<string> = new Set(
  'messages input system instructions contents systemInstruction'.split(' '),
)

/**
 * Returns the parts of a client's body that are not in `read`. The body must be what a provider receives. Each message and tool is
 * a part of its own, so that the same parts are known in the next turn.
 */
export function unreadParts(body: Schema, read: ReadValues): readonly PromptDefinition[] {
  return Object.entries(body).flatMap(([param, value]) => {
    const kind = conversationFields.has(param) ? 'data' : 'definition'
    const elements: readonly unknown[] = Array.isArray(value) ? value : [value]
    return elements.flatMap(element => {
      // Tools can be declared within the conversation.
      const tools: readonly unknown[] = kind === 'data' ? toolsIn(element) : none
      const found = tools.flatMap(tool => getParts('tools', 'definition', jsonTexts(tool, read)))
      read.add(...tools)
      return [...found, ...getParts(param, kind, jsonTexts(element, read))]
    })
  })
}

function toolsIn(item: unknown): readonly unknown[] {
  return typeof item === 'object' && item !== null && 'tools' in item && Array.isArray(item.tools) ? item.tools : none
}

function getParts(param: string, kind: 'definition' | 'data', { texts, values, images, ...others }: JsonTexts) {
  const part = (own: PromptDefinition['kind'], found: readonly string[], count: number, pictures: number) =>
    found.length + pictures === 0
      ? none
      : [{ role: 'definition', param, kind: own, texts: [found.join('\n')], values: count, images: pictures } as const]
  return [
    ...part(kind, texts, values, images),
    ...part('opaque', others.opaque, 0, 0),
    ...part('credentials', others.credentials, 0, 0),
  ]
}

/**
 * Returns the request with all definition texts mapped by `clean`. Tool names stay, since calls and choices refer to
 * them.
 */
export function mapDefinitionTexts(
  request: ChatRequest,
  clean: (text: string) => string,
): Pick<ChatRequest, 'tools' | 'responseFormat' | 'extras' | 'stop' | 'endUser'> {
  const { tools, responseFormat, extras } = request
  const orNull = (text: string | null) => (text === null ? null : clean(text))
  return {
    tools: tools.map(tool => ({
      ...tool,
      description: orNull(tool.description),
      parameters: tool.parameters === null ? null : cleanedSchema(tool.parameters, clean),
    })),
    responseFormat:
      responseFormat.type !== 'json_schema'
        ? responseFormat
        : {
            ...responseFormat,
            description: orNull(responseFormat.description),
            schema: cleanedSchema(responseFormat.schema, clean),
          },
    extras: cleanedSchema(extras, clean),
    stop: request.stop.map(clean),
    endUser: orNull(request.endUser),
  }
}

const none: readonly never[] = []

/** Returns the other fields with a text. Those of a body that is sent as the client wrote it are in `source.unread`. */
function textualSettings({ extras, source, stop, endUser, logitBias }: Defined): readonly Setting[] {
  if (source != null) return none
  const found: Setting[] = []
  for (const name in extras) if (isTextual(extras[name])) found.push([name, extras[name]])
  if (stop !== undefined && stop.length > 0) found.push(['stop', stop])
  if (isTextual(endUser)) found.push(['user', endUser])
  if (isTextual(logitBias)) found.push(['logit_bias', logitBias])
  return found
}

function isTextual(value: unknown): boolean {
  return typeof value === 'string' || (typeof value === 'object' && value !== null)
}

type Setting = readonly [param: string, value: unknown]
type Schema = Readonly<Record<string, unknown>>

function definition(param: string, name: string, description: string | null, schema: Schema | null): PromptDefinition {
  const { texts, opaque, credentials, values, images } = jsonTexts(schema)
  const all = [name, ...texts, ...opaque, ...credentials].join('\n')
  return { role: 'definition', param, kind: 'definition', texts: [description ?? '', all], values, images }
}

/** Returns the schema with every string and name mapped, so that `required` still matches `properties`. */
function cleanedSchema(schema: Schema, clean: (text: string) => string): Schema {
  const cleaned = (value: unknown): unknown => {
    if (typeof value === 'string') return clean(value)
    if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value
    return Array.isArray(value) ? value.map(cleaned) : cleanedObject(value)
  }
  const cleanedObject = (object: object) =>
    Object.fromEntries(Object.entries(object).map(([name, inner]) => [clean(name), cleaned(inner)]))
  return cleanedObject(schema)
}

type ForcedChoice = Exclude<ToolChoice, 'auto' | 'none'>

/** Returns true if the client requires a tool call. */
export function isDemanding(choice: ToolChoice | null): choice is ForcedChoice {
  return choice !== null && choice !== 'auto' && choice !== 'none'
}

/**
 * Returns true if the tool choice accepts a call of this tool: of an offered one, never of one that the model made up. A choice that
 * names no tool of the client is for one of the provider.
 */
export function isChosenTool({ toolChoice, tools }: Pick<ChatRequest, 'toolChoice' | 'tools'>, name: string): boolean {
  if (!isDemanding(toolChoice)) return true
  const isOffered = (text: string) => tools.some(tool => tool.name === text)
  if (toolChoice === 'required') return isOffered(name)
  return toolChoice.name === name || !isOffered(toolChoice.name)
}

/** Names of tools: one for a tool of a namespace, on wires that know no namespaces, and the types of OpenAI's own. */
/** Longest name that every provider takes. */
const longestName = 64
const hashCharacters = 8

/** Members of this namespace are called by their own names. */
export const implicitNamespace = 'functions'

/**
 * Returns the name under which a tool is declared and called. It is always the same for the same tool, so that a
 * conversation's history matches its declaration. A name that a provider would reject is truncated and gets a hash of
 * the whole.
 */
export function flatToolName(namespace: string | null, name: string): string {
  const whole = namespace === null || namespace === implicitNamespace ? name : `${namespace}__${name}`
  return /^[A-Za-z0-9_-]+$/.test(whole) && whole.length <= longestName ? whole : shortToolName(whole, longestName)
}

/** Returns a name of at most `longest` letters, digits, `_` or `-` with a hash of the whole name. */
export function shortToolName(whole: string, longest: number): string {
  const clean = whole.replaceAll(/[^A-Za-z0-9_-]/g, '_')
  return `${clean.slice(0, longest - hashCharacters - 1)}_${getHash(whole)}`
}

/** FNV-1a: two names of one request that fall together are refused, so that nothing rests on it. */
function getHash(text: string): string {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(16).padStart(hashCharacters, '0')
}

const clientTools: ReadonlySet<unknown> = new Set(['function', 'custom', 'namespace', 'tool_search'])
const openaiTools: ReadonlySet<unknown> = new Set([
  'mcp',
  'computer',
  'computer_use_preview',
  'local_shell',
  'apply_patch',
])

/**
 * Returns whether a tool of the Responses API may be sent to OpenAI: a tool of the client, or a tool of OpenAI that costs only
 * tokens and cannot reach the operator's organization (files, containers). Returns false for unknown tools.
 */
export function isTokenPricedTool(tool: Readonly<Record<string, unknown>>): boolean {
  const { type, environment } = tool
  if (type === 'shell')
    return (
      typeof environment === 'object' && environment !== null && 'type' in environment && environment.type === 'local'
    )
  return clientTools.has(type) || openaiTools.has(type)
}
