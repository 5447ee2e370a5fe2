/**
 * Parts of a request beside the conversation: definitions, settings, and what only the client's own body contains. They reach a
 * model like a prompt, so moderation, secret detection and token counts read them like one.
 */
import type { ChatRequest, PromptDefinition } from './chat.ts'
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
    ...settings.flatMap(([param, value]) => partsOf(param, 'definition', jsonTexts(value))),
  ]
  if (responseFormat.type !== 'json_schema') return found
  const { name, description, schema } = responseFormat
  return [...found, definition('response_format', name, description, schema)]
}

/** Fields of a body that hold the conversation. */
const conversationFields: ReadonlySet<string> = new Set(['messages', 'input', 'system', 'instructions'])

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
      const found = tools.flatMap(tool => partsOf('tools', 'definition', jsonTexts(tool, read)))
      read.add(...tools)
      return [...found, ...partsOf(param, kind, jsonTexts(element, read))]
    })
  })
}

function toolsIn(item: unknown): readonly unknown[] {
  return typeof item === 'object' && item !== null && 'tools' in item && Array.isArray(item.tools) ? item.tools : none
}

function partsOf(param: string, kind: 'definition' | 'data', { texts, values, images, ...others }: JsonTexts) {
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
  ask: ChatRequest,
  clean: (text: string) => string,
): Pick<ChatRequest, 'tools' | 'responseFormat' | 'extras' | 'stop' | 'endUser'> {
  const { tools, responseFormat, extras } = ask
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
    stop: ask.stop.map(clean),
    endUser: orNull(ask.endUser),
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
