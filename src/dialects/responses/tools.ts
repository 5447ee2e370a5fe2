/**
 * Tools of a Responses request: functions, free-text tools and namespaces of both become the plain functions that every provider
 * has; each keeps its origin, so that a call is answered under the name and the namespace under which the client declared it.
 */
import { Type } from '@sinclair/typebox'
import type { Tool, ToolChoice } from '../../core/chat/chat.ts'
import { flatToolName, implicitNamespace, isTokenPricedTool } from '../../core/chat/tool-names.ts'
import { bodyText } from '../../core/request/chat-request.ts'
import { invalidField, nullable, oneOf } from '../../core/validation/validate.ts'
import { checkerAt, type Fields, isFields } from './check.ts'

/** How the client declared a tool, and expects it to be called. */
export type ToolOrigin = {
  readonly kind: 'function' | 'custom' | 'tool_search'
  readonly name: string
  /** null = none, or the implicit one. */
  readonly namespace: string | null
}

export type DeclaredTools = {
  readonly tools: readonly Tool[]
  /** By the name under which a model calls it. */
  readonly origins: ReadonlyMap<string, ToolOrigin>
  /** Types of tools that OpenAI runs or defines itself. */
  readonly hosted: readonly string[]
  /** Types of tools that are left out wherever the request goes. */
  readonly refused: readonly string[]
}

/** A list of tools, and where in the request it stands. */
export type ToolList = { readonly tools: readonly unknown[]; readonly place: string }

/** Most tools of one request, members of namespaces included. */
export const maximumTools = 1024

const open = { additionalProperties: true }
const name = Type.String({ minLength: 1, maxLength: 256 })
const description = nullable(bodyText)
const anyObject = Type.Object({}, open)

const checkFunction = checkerAt(
  Type.Object(
    {
      name,
      description,
      parameters: nullable(anyObject),
      strict: nullable(Type.Boolean()),
      defer_loading: nullable(Type.Boolean()),
    },
    open,
  ),
)
const checkCustom = checkerAt(
  Type.Object({ name, description, format: nullable(anyObject), defer_loading: nullable(Type.Boolean()) }, open),
)
const checkNamespace = checkerAt(
  Type.Object({ name, description, tools: Type.Array(anyObject, { maxItems: maximumTools }) }, open),
)
const checkSearch = checkerAt(
  Type.Object({ execution: nullable(Type.String()), description, parameters: nullable(anyObject) }, open),
)

/** A search of OpenAI's is charged per call: the gateway's own web access takes its place. */
export const isWebSearch = (type: string) => /^web_search/.test(type)

/** The tool that finds other tools, run by the client. */
export const searchToolName = 'tool_search'

type Declared = { readonly tool: Tool; readonly origin: ToolOrigin; readonly isDeferred: boolean }

/**
 * Reads the tools of all lists in their order; of two declarations of one tool the later one counts. `loaded` lists are those that
 * a search of the client's found. Throws `invalid_request` where two tools would be called by one name.
 */
export function readTools(lists: readonly ToolList[], loaded: readonly ToolList[]): DeclaredTools {
  const declared = new Map<string, Declared>()
  const hosted = new Set<string>()
  const refused = new Set<string>()
  const collect = (list: ToolList, isLoaded: boolean) => {
    for (const [index, tool] of list.tools.entries()) {
      const place = `${list.place}.${index}`
      const type = typeOf(tool, place)
      if (!isFields(tool) || !isTokenPricedTool(tool)) refused.add(type)
      else if (!isClientTool(type)) hosted.add(type)
      else
        for (const one of declaredBy(tool, type, place))
          add(declared, isLoaded ? { ...one, isDeferred: false } : one, place)
    }
  }
  for (const list of lists) collect(list, false)
  for (const list of loaded) collect(list, true)
  const searches = declared.has(searchToolName)
  const all = [...declared.values()].filter(({ isDeferred }) => !isDeferred || !searches)
  return {
    tools: all.map(({ tool }) => tool),
    origins: new Map([...declared].map(([flat, { origin }]) => [flat, origin])),
    hosted: [...hosted],
    refused: [...refused].filter(type => !isWebSearch(type)),
  }
}

function add(declared: Map<string, Declared>, one: Declared, place: string): void {
  const { name: flat } = one.tool
  const earlier = declared.get(flat)
  if (earlier !== undefined && !isSame(earlier.origin, one.origin)) {
    const [first, second] = [earlier.origin, one.origin].map(spelled)
    throw invalidField(place, `declares ${second}, which would be called by the same name as ${first}: rename one`)
  }
  // A later declaration without its content does not hide what a search has loaded.
  declared.set(flat, earlier?.isDeferred === false && one.isDeferred ? earlier : one)
  if (declared.size > maximumTools) throw invalidField(place, `is one tool too many: send at most ${maximumTools}`)
}

function isSame(one: ToolOrigin, other: ToolOrigin): boolean {
  return one.name === other.name && one.namespace === other.namespace
}

function spelled({ namespace, name: own }: ToolOrigin): string {
  return namespace === null ? `"${own}"` : `"${own}" of the namespace "${namespace}"`
}

function typeOf(tool: unknown, place: string): string {
  if (!isFields(tool)) throw invalidField(place, 'must be an object')
  if (typeof tool.type !== 'string') throw invalidField(`${place}.type`, 'is missing: it must be a string')
  return tool.type
}

function isClientTool(type: string): boolean {
  return type === 'function' || type === 'custom' || type === 'namespace' || type === searchToolName
}

function declaredBy(tool: unknown, type: string, place: string): readonly Declared[] {
  switch (type) {
    case 'namespace': {
      const { name: namespace, description: about, tools } = checkNamespace(tool, place)
      return tools.flatMap((member, index) => {
        const at = `${place}.tools.${index}`
        const kind = typeOf(member, at)
        return kind === 'function' || kind === 'custom'
          ? [memberOf(member, kind, at, { namespace, about: index === 0 ? about : null })]
          : []
      })
    }
    case searchToolName: {
      const { execution, description: about, parameters } = checkSearch(tool, place)
      // A search that OpenAI would run finds nothing that is not declared here already.
      if (execution !== 'client') return []
      const search = { name: searchToolName, description: about ?? null, parameters: parameters ?? null, strict: null }
      const origin: ToolOrigin = { kind: 'tool_search', name: searchToolName, namespace: null }
      return [{ tool: search, origin, isDeferred: false }]
    }
    default:
      return [memberOf(tool, type === 'custom' ? 'custom' : 'function', place, null)]
  }
}

function memberOf(
  tool: unknown,
  kind: 'function' | 'custom',
  place: string,
  /** `about` says what the namespace is for: its first member tells. */
  within: { readonly namespace: string; readonly about: string | null | undefined } | null,
): Declared {
  const namespace = within === null || within.namespace === implicitNamespace ? null : within.namespace
  if (kind === 'custom') {
    const { name: own, description: text, format, defer_loading } = checkCustom(tool, place)
    const description = joined(within?.about, text, grammarText(format ?? null))
    return {
      tool: { name: flatToolName(namespace, own), description, parameters: inputSchema, strict: null },
      origin: { kind, name: own, namespace },
      isDeferred: defer_loading === true,
    }
  }
  const { name: own, description: text, parameters, strict, defer_loading } = checkFunction(tool, place)
  return {
    tool: {
      name: flatToolName(namespace, own),
      description: joined(within?.about, text),
      parameters: parameters ?? null,
      strict: strict ?? null,
    },
    origin: { kind, name: own, namespace },
    isDeferred: defer_loading === true,
  }
}

function joined(...texts: readonly (string | null | undefined)[]): string | null {
  return texts.filter(text => text != null && text !== '').join('\n\n') || null
}

/** A function whose schema has no required text is called with `{}`. */
const inputSchema = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The whole input of the tool, as plain text.' } },
  required: ['input'],
  additionalProperties: false,
}

function grammarText(format: Fields | null): string | null {
  if (format?.type !== 'grammar' || typeof format.definition !== 'string') return null
  const syntax = format.syntax === 'regex' ? 'regular expression' : 'Lark grammar'
  return `\`input\` must match this ${syntax}:\n${format.definition}`
}

const listed = Type.Object({ type: Type.String(), name: Type.Optional(Type.String()) }, open)
const checkChoice = checkerAt(
  Type.Object(
    {
      type: Type.String(),
      name: nullable(Type.String()),
      namespace: nullable(Type.String()),
      mode: nullable(oneOf(['auto', 'required'])),
      tools: nullable(Type.Array(listed, { maxItems: maximumTools })),
    },
    open,
  ),
)

export type ChosenTools = {
  readonly tools: readonly Tool[]
  readonly choice: ToolChoice | null
  /** A tool that only OpenAI has must be called. */
  readonly needsHosted: boolean
}

/** The tools that may be called, and which must be. Throws `invalid_request`, or `unsupported_parameter` for a tool that is left out. */
export function chooseTools(value: unknown, declared: DeclaredTools): ChosenTools {
  const { tools, hosted } = declared
  if (value == null || value === 'auto' || value === 'none')
    return { tools, choice: tools.length === 0 ? null : (value ?? null), needsHosted: false }
  if (value === 'required') {
    if (tools.length > 0) return { tools, choice: 'required', needsHosted: false }
    if (hosted.length > 0) return { tools, choice: null, needsHosted: true }
    throw invalidField('tool_choice', 'asks for a tool, but there is none to call: send the tools too')
  }
  if (typeof value === 'string')
    throw invalidField('tool_choice', 'must be "none", "auto", "required" or an object that names a tool')
  const { type, name: own, namespace, mode, tools: allowed } = checkChoice(value, 'tool_choice')
  if (type === 'allowed_tools') return allowedTools(declared, mode ?? 'auto', allowed ?? [])
  if (type === 'function' || type === 'custom' || type === searchToolName) {
    const wanted = type === searchToolName ? searchToolName : flatToolName(namespace ?? null, own ?? '')
    if (tools.some(tool => tool.name === wanted)) return { tools, choice: { name: wanted }, needsHosted: false }
    throw invalidField('tool_choice.name', 'must be the name of one of `tools`')
  }
  if (isWebSearch(type)) return { tools, choice: tools.length === 0 ? null : 'auto', needsHosted: false }
  if (hosted.includes(type)) return { tools, choice: tools.length === 0 ? null : 'auto', needsHosted: true }
  throw invalidField('tool_choice.type', 'names a tool that is not available here', 'unsupported_parameter')
}

function allowedTools(declared: DeclaredTools, mode: 'auto' | 'required', allowed: readonly Fields[]): ChosenTools {
  const names = new Set(
    allowed.map(({ name: own, namespace }) =>
      flatToolName(typeof namespace === 'string' ? namespace : null, typeof own === 'string' ? own : ''),
    ),
  )
  const tools = declared.tools.filter(tool => names.has(tool.name))
  const isHosted = allowed.some(({ type }) => typeof type === 'string' && declared.hosted.includes(type))
  if (tools.length === 0 && mode === 'required' && !isHosted)
    throw invalidField('tool_choice.tools', 'must name at least one of `tools`')
  return {
    tools,
    choice: tools.length === 0 ? null : mode,
    needsHosted: tools.length === 0 && mode === 'required' && isHosted,
  }
}
