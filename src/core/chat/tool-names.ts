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
  const clean = whole.replaceAll(/[^A-Za-z0-9_-]/g, '_')
  if (clean === whole && whole.length <= longestName && whole !== '') return whole
  return `${clean.slice(0, longestName - hashCharacters - 1)}_${hashOf(whole)}`
}

/** FNV-1a: two names of one request that fall together are refused, so that nothing rests on it. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(16).padStart(hashCharacters, '0')
}

/**
 * OpenAI's own tools that are charged for apart from tokens, or that reach what the operator's organization stores: no request is
 * sent with them.
 */
export function isChargedTool(type: unknown): boolean {
  return typeof type === 'string' && /^(?:file_search|code_interpreter|image_generation|web_search)/.test(type)
}
