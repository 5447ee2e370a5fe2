/** Creates a single name for a tool in a namespace, for wire formats without namespaces. */

/** Longest name that every provider accepts. */
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
  const hash = new Bun.CryptoHasher('sha256').update(whole).digest('hex').slice(0, hashCharacters)
  return `${clean.slice(0, longestName - hashCharacters - 1)}_${hash}`
}
