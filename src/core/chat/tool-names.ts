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
  return `${clean.slice(0, longest - hashCharacters - 1)}_${hashOf(whole)}`
}

/** FNV-1a: two names of one request that fall together are refused, so that nothing rests on it. */
function hashOf(text: string): string {
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
