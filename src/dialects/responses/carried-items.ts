/**
 * Items that a client refers to by ID. The Vercel AI SDK sends references to text and reasoning of earlier turns by
 * default, and the gateway stores none. So the last item of its responses is a reasoning item without text whose ID contains the
 * others, sealed: the client refers to it as well, and the references beside it are resolved from it.
 */
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { type Fields, isFields, textOrNull } from '../foreign-objects.ts'
import { isSealed, type ReasoningOpener } from '../reasoning-seal.ts'

const prefix = 'rs_'
/** Distinguishes sealed items from sealed reasoning. */
const mark = 'items'

/** Returns whether a client refers to earlier items by ID. */
export function refersToItems(store: boolean | null | undefined, headers: Headers): boolean {
  return store !== false && /\bai-sdk\b/.test(headers.get('user-agent') ?? '')
}

/** Returns the item that carries others; null = there is nothing to refer to. Calls of functions are always sent whole. */
export function findCarrier(
  items: readonly Fields[],
  seal: (item: ReturnType<typeof sealable>) => string,
): Fields | null {
  const referable = items.filter(({ type }) => type !== 'function_call')
  if (referable.length === 0) return null
  return { type: 'reasoning', id: prefix + seal(sealable(JSON.stringify(referable))), summary: [] }
}

function sealable(text: string) {
  return { family: 'compatible', kind: 'encrypted', text, data: '', id: mark } as const
}

/** Returns the input with the carried items in place of the references to them, without the items that carry them. */
export function withCarriedItems(input: readonly unknown[], { seal, accountId }: ReasoningOpener): readonly unknown[] {
  const carried = new Map<string, unknown>()
  const carriers = new Set<unknown>()
  for (const item of input) {
    const id =
      isFields(item) && (item.type === 'item_reference' || item.type === 'reasoning') ? textOrNull(item.id) : null
    if (id === null || !isSealed(id.slice(prefix.length))) continue
    const opened = seal.open(accountId, id.slice(prefix.length))
    const items: unknown = opened?.id === mark ? parseUntrustedJson(opened.text) : null
    if (!Array.isArray(items)) continue
    carriers.add(item)
    for (const entry of items) if (isFields(entry)) carried.set(textOrNull(entry.id) ?? '', entry)
  }
  if (carriers.size === 0) return input
  return input
    .filter(item => !carriers.has(item))
    .map(item =>
      isFields(item) && item.type === 'item_reference' ? (carried.get(textOrNull(item.id) ?? '') ?? item) : item,
    )
}
