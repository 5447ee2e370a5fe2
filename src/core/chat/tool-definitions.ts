/**
 * Definitions that a client sends beside the conversation. Models read them like a prompt, so moderation and secret
 * detection check them like one.
 */
import type { ChatRequest } from './chat.ts'

export type PromptDefinition = {
  readonly role: 'definition'
  /** The request field that holds the definition. */
  readonly param: string
  /** Its description and the strings of its schema, one per entry. */
  readonly texts: readonly string[]
}

/** Returns all definitions of a request: each tool, the response schema, and other fields that can hold a text. */
export function collectDefinitions({
  tools,
  responseFormat,
  extras,
  source,
}: Pick<ChatRequest, 'tools' | 'responseFormat' | 'extras' | 'source'>): readonly PromptDefinition[] {
  const texts = textualExtras({ extras, source })
  const others = source?.definitions ?? none
  if (tools.length + texts.length + others.length === 0 && responseFormat.type !== 'json_schema') return none
  const found = [
    ...tools.map(({ name, description, parameters }) => definition('tools', name, description, parameters)),
    ...others.map((fields): PromptDefinition => ({ role: 'definition', param: 'tools', texts: textsIn(fields) })),
    ...texts.map(([param, value]): PromptDefinition => ({ role: 'definition', param, texts: textsIn({ value }) })),
  ]
  if (responseFormat.type !== 'json_schema') return found
  const { name, description, schema } = responseFormat
  return [...found, definition('response_format', name, description, schema)]
}

/**
 * Returns the request with all definition texts mapped by `clean`. Tool names stay, since calls and choices refer to
 * them.
 */
export function mapDefinitionTexts(
  ask: ChatRequest,
  clean: (text: string) => string,
): Pick<ChatRequest, 'tools' | 'responseFormat' | 'extras'> {
  const { tools, responseFormat, extras } = ask
  const texts = textualExtras(ask)
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
    extras: texts.length === 0 ? extras : { ...extras, ...cleanedSchema(Object.fromEntries(texts), clean) },
  }
}

const none: readonly never[] = []

/** Fields that select how a request is served: no model reads them. */
const unread: ReadonlySet<string> = new Set(
  'service_tier prompt_cache_key prompt_cache_retention prompt_cache_options moderation modalities client_metadata anthropic-beta'.split(
    ' ',
  ),
)

/** Returns the other fields that can hold a text for the model. Those of a Messages body are in `source.unread`. */
function textualExtras({
  extras,
  source,
}: Pick<ChatRequest, 'extras' | 'source'>): readonly (readonly [name: string, value: unknown])[] {
  if (source?.dialect === 'messages') return none
  let found: [string, unknown][] | null = null
  for (const name in extras) {
    const value = extras[name]
    const isTextual = typeof value === 'string' ? /\s/.test(value) : typeof value === 'object' && value !== null
    if (!isTextual || unread.has(name)) continue
    found ??= []
    found.push([name, value])
  }
  return found ?? none
}

type Schema = Readonly<Record<string, unknown>>

function definition(
  param: PromptDefinition['param'],
  name: string,
  description: string | null,
  schema: Schema | null,
): PromptDefinition {
  return { role: 'definition', param, texts: [description ?? '', [name, ...textsIn(schema)].join('\n')] }
}

/**
 * Returns the strings of a schema except its types, and those names that are more than one plain word. Iterative,
 * because a schema may be deep.
 */
function textsIn(schema: Schema | null): readonly string[] {
  const texts: string[] = []
  const open: unknown[] = [schema]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === 'string') texts.push(value)
    if (typeof value !== 'object' || value === null) continue
    for (const [name, inner] of Object.entries(value).reverse()) {
      if (!Array.isArray(value) && (name.length > longestPlain || /[^\w$-]/.test(name))) open.push(name)
      if (name !== 'type' || typeof inner !== 'string') open.push(inner)
    }
  }
  return texts
}

const longestPlain = 32

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
