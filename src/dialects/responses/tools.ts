/**
 * Parses the tools of Responses requests. Functions, free-text tools and namespaces become plain functions, which every provider
 * supports. Each keeps its origin, so that calls have the name and the namespace that the client declared.
 */
import { Type } from '@sinclair/typebox'
import type { Tool, ToolChoice } from '../../core/chat/chat.ts'
import { flatToolName, implicitNamespace, isTokenPricedTool } from '../../core/chat/tool-definitions.ts'
import { bodyText } from '../../core/request/part-schemas.ts'
import { invalidField, nullable, oneOf } from '../../core/validation/validate.ts'
import { customParameters, grammarText, joinedTexts } from '../custom-tools.ts'
import { anyObject, checkerAt, type Fields, isFields, open } from '../foreign-objects.ts'

/** The declaration of a tool by the client, whose form its calls must have. */
export type ToolOrigin = {
  readonly kind: 'function' | 'custom' | 'tool_search'
  readonly name: string
  /** null = no namespace, or the implicit one. */
  readonly namespace: string | null
}

export type DeclaredTools = {
  readonly tools: readonly Tool[]
  /** Origins by the function name for the model. */
  readonly origins: ReadonlyMap<string, ToolOrigin>
  /** Types of tools that OpenAI runs or defines. */
  readonly hosted: readonly string[]
  /** Types of tools that no provider receives. */
  readonly refused: readonly string[]
  /** The values of the client's declarations that each tool contains. */
  readonly contents: ReadonlyMap<Tool, readonly unknown[]>
}

/** A list of tools and its path in the request. */
export type ToolList = { readonly tools: readonly unknown[]; readonly place: string }

/** Maximum number of tools per request, with members of namespaces. */
export const maximumDeclaredTools = 1024

const name = Type.String({ minLength: 1, maxLength: 256 })
const description = nullable(bodyText)

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
  Type.Object({ name, description, tools: Type.Array(anyObject, { maxItems: maximumDeclaredTools }) }, open),
)
const checkSearch = checkerAt(
  Type.Object({ execution: nullable(Type.String()), description, parameters: nullable(anyObject) }, open),
)

/** OpenAI charges its web search per call: the gateway's web search replaces it. */
const isWebSearch = (type: string) => /^web_search/.test(type)

/** Name of the tool with which a client searches for tools. */
export const searchToolName = 'tool_search'

type Declared = {
  readonly tool: Tool
  readonly origin: ToolOrigin
  readonly isDeferred: boolean
  readonly contents: readonly unknown[]
}

/**
 * Parses the tools of all lists in order; a later declaration of a tool replaces an earlier one. `loaded`: lists that a search of the
 * client found. Throws `invalid_request` if two tools would have the same function name.
 */
export function readTools(lists: readonly ToolList[], loaded: readonly ToolList[]): DeclaredTools {
  const declared = new Map<string, Declared>()
  const hosted = new Set<string>()
  const refused = new Set<string>()
  const collect = (list: ToolList, isLoaded: boolean) => {
    for (const [index, tool] of list.tools.entries()) {
      const place = `${list.place}.${index}`
      const type = getType(tool, place)
      if (!isFields(tool) || !isTokenPricedTool(tool)) refused.add(type)
      else if (!isClientTool(type)) hosted.add(type)
      else
        for (const item of declaredBy(tool, type, place))
          add(declared, isLoaded ? { ...item, isDeferred: false } : item, place)
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
    contents: new Map(all.map(({ tool, contents }) => [tool, contents])),
  }
}

function add(declared: Map<string, Declared>, item: Declared, place: string): void {
  const { name: flat } = item.tool
  const earlier = declared.get(flat)
  if (earlier !== undefined && !isSame(earlier.origin, item.origin)) {
    const [first, second] = [earlier.origin, item.origin].map(spelled)
    throw invalidField(place, `declares ${second}, which would have the same function name as ${first}. Rename one`)
  }
  // A deferred declaration does not replace a tool that a search has loaded.
  declared.set(flat, earlier?.isDeferred === false && item.isDeferred ? earlier : item)
  if (declared.size > maximumDeclaredTools)
    throw invalidField(place, `exceeds the limit of ${maximumDeclaredTools} tools. Send fewer`)
}

function isSame(item: ToolOrigin, other: ToolOrigin): boolean {
  return item.name === other.name && item.namespace === other.namespace
}

function spelled({ namespace, name: own }: ToolOrigin): string {
  return namespace === null ? `"${own}"` : `"${own}" of the namespace "${namespace}"`
}

function getType(tool: unknown, place: string): string {
  if (!isFields(tool)) throw invalidField(place, 'must be an object')
  if (typeof tool.type !== 'string') throw invalidField(`${place}.type`, 'is required: a string')
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
        const kind = getType(member, at)
        return kind === 'function' || kind === 'custom'
          ? [getMember(member, kind, at, { namespace, about: index === 0 ? about : null })]
          : []
      })
    }
    case searchToolName: {
      const { execution, description: about, parameters } = checkSearch(tool, place)
      // A search at OpenAI finds only tools that the request declares.
      if (execution !== 'client') return []
      const search = { name: searchToolName, description: about ?? null, parameters: parameters ?? null, strict: null }
      const origin: ToolOrigin = { kind: 'tool_search', name: searchToolName, namespace: null }
      return [{ tool: search, origin, isDeferred: false, contents: [about, parameters] }]
    }
    default:
      return [getMember(tool, type === 'custom' ? 'custom' : 'function', place, null)]
  }
}

function getMember(
  tool: unknown,
  kind: 'function' | 'custom',
  place: string,
  /** `about` is the description of the namespace, which goes to its first member. */
  within: { readonly namespace: string; readonly about: string | null | undefined } | null,
): Declared {
  const namespace = within === null || within.namespace === implicitNamespace ? null : within.namespace
  if (kind === 'custom') {
    const { name: own, description: text, format, defer_loading } = checkCustom(tool, place)
    const form: Fields = format ?? {}
    const grammar = form.type === 'grammar' ? grammarText(form) : null
    const description = joinedTexts(within?.about, text, grammar)
    return {
      tool: { name: flatToolName(namespace, own), description, parameters: customParameters, strict: null },
      origin: { kind, name: own, namespace },
      isDeferred: defer_loading === true,
      contents: [...namesIn(namespace, own), within?.about, text, grammar === null ? null : getDefinition(format)],
    }
  }
  const { name: own, description: text, parameters, strict, defer_loading } = checkFunction(tool, place)
  return {
    tool: {
      name: flatToolName(namespace, own),
      description: joinedTexts(within?.about, text),
      parameters: parameters ?? null,
      strict: strict ?? null,
    },
    origin: { kind, name: own, namespace },
    isDeferred: defer_loading === true,
    contents: [...namesIn(namespace, own), within?.about, text, parameters],
  }
}

/** Returns the name if the function's name contains it: one with other characters has another form there. */
function namesIn(namespace: string | null, name: string): readonly string[] {
  return flatToolName(namespace, name).endsWith(name) ? [name] : []
}

function getDefinition(format: Fields | null | undefined): unknown {
  return format?.definition
}

const listed = Type.Object({ type: Type.String(), name: Type.Optional(Type.String()) }, open)
const checkChoice = checkerAt(
  Type.Object(
    {
      type: Type.String(),
      name: nullable(Type.String()),
      namespace: nullable(Type.String()),
      mode: nullable(oneOf(['auto', 'required'])),
      tools: nullable(Type.Array(listed, { maxItems: maximumDeclaredTools })),
    },
    open,
  ),
)

type ChosenTools = {
  readonly tools: readonly Tool[]
  readonly choice: ToolChoice | null
  /** The model must call a tool that only OpenAI has. */
  readonly needsHosted: boolean
}

/** Returns the allowed tools and the choice. Throws `invalid_request`, or `unsupported_parameter` for an unsupported tool. */
export function chooseTools(value: unknown, declared: DeclaredTools): ChosenTools {
  const { tools, hosted } = declared
  if (value == null || value === 'auto' || value === 'none')
    return { tools, choice: tools.length === 0 ? null : (value ?? null), needsHosted: false }
  if (value === 'required') {
    if (tools.length > 0) return { tools, choice: 'required', needsHosted: false }
    if (hosted.length > 0) return { tools, choice: null, needsHosted: true }
    throw invalidField('tool_choice', 'requires at least one tool in `tools`')
  }
  if (typeof value === 'string')
    throw invalidField('tool_choice', 'must be "none", "auto", "required" or an object with the name of a tool')
  const { type, name: own, namespace, mode, tools: allowed } = checkChoice(value, 'tool_choice')
  if (type === 'allowed_tools') return allowedTools(declared, mode ?? 'auto', allowed ?? [])
  if (type === 'function' || type === 'custom' || type === searchToolName) {
    const wanted = type === searchToolName ? searchToolName : flatToolName(namespace ?? null, own ?? '')
    if (tools.some(tool => tool.name === wanted)) return { tools, choice: { name: wanted }, needsHosted: false }
    throw invalidField('tool_choice.name', 'must match the name of a tool in `tools`')
  }
  if (isWebSearch(type)) return { tools, choice: tools.length === 0 ? null : 'auto', needsHosted: false }
  if (hosted.includes(type)) return { tools, choice: tools.length === 0 ? null : 'auto', needsHosted: true }
  throw invalidField(
    'tool_choice.type',
    'is the type of a tool that the gateway does not support',
    'unsupported_parameter',
  )
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
    throw invalidField('tool_choice.tools', 'must contain at least one tool of `tools`')
  return {
    tools,
    choice: tools.length === 0 ? null : mode,
    needsHosted: tools.length === 0 && mode === 'required' && isHosted,
  }
}
