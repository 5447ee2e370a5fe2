/**
 * Charges beside tokens that a request to Anthropic can cause: Anthropic's own searches, and cache writes for an hour.
 * Admission reserves them, because the settlement bills at most the reservation.
 */
import type { ChatRequest, SourceBody } from '../chat/chat.ts'
import type { Model } from '../models/models.ts'
import type { PriceTerms } from '../models/pricing.ts'
import { ceilingOfMillionth, highestPrices, providerSearchCost } from './money.ts'

/** Uses of a tool without `max_uses`, which has no limit at Anthropic. */
export const usesUnlessLimited = 10

const searchType = /^web_search_\d+$/
const usesType = /^web_(?:search|fetch)_\d+$/

/** Returns true for tools of Anthropic with a limit of uses: its search and its page fetch. */
export function hasUses(tool: unknown): tool is { readonly type: string; readonly max_uses?: unknown } {
  return typeof tool === 'object' && tool !== null && 'type' in tool && usesType.test(String(tool.type))
}

/** Returns true for Anthropic's search tool. */
function isSearchTool(tool: unknown): tool is { readonly type: string; readonly max_uses?: unknown } {
  return typeof tool === 'object' && tool !== null && 'type' in tool && searchType.test(String(tool.type))
}

/** Returns the maximum of these charges in micro-cents, beyond a reservation of the whole input at its highest token price. */
export function highestSourceCharges(
  request: Pick<ChatRequest, 'source' | 'messages' | 'tools'>,
  { model, endpoint }: { readonly model: ChargedModel; readonly endpoint: { readonly provider: Charging } },
  inputTokens: number,
  terms: PriceTerms,
): number {
  const { provider } = endpoint
  const source =
    provider.takesSource?.(model).includes('messages') && request.source?.dialect === 'messages' ? request.source : null
  const isHour =
    source === null ? provider.cachesMarkedInput?.(model) === true && hasHourMark(request) : keepsForAnHour(source)
  if (source === null && !isHour) return 0
  const surcharge = isHour ? highestPrices(model.pricing, inputTokens, terms).hourSurcharge : 0
  const hour = ceilingOfMillionth(inputTokens * surcharge)
  return hour + (source === null ? 0 : providerSearchCost({ providerSearches: mostSearches(source) }))
}

type ChargedModel = Pick<Model, 'id' | 'provider' | 'pricing'>

/** The part of a provider that decides which charges are possible. */
type Charging = {
  readonly takesSource?: (model: ChargedModel) => readonly SourceBody['dialect'][]
  readonly cachesMarkedInput?: (model: ChargedModel) => boolean
}

/** Returns whether the client asked Anthropic to keep a part for an hour. */
export function asksForHour(request: Pick<ChatRequest, 'source' | 'messages' | 'tools'>): boolean {
  return request.source?.dialect === 'messages' ? keepsForAnHour(request.source) : hasHourMark(request)
}

/** Returns whether a client of another API form marked a part for an hour. */
function hasHourMark({ messages, tools }: Pick<ChatRequest, 'messages' | 'tools'>): boolean {
  return (
    tools.some(({ cache }) => cache === '1h') ||
    messages.some(message =>
      message.role === 'user' ? message.content.some(({ cache }) => cache === '1h') : message.cache === '1h',
    )
  )
}

function mostSearches({ fields: { tools } }: SourceBody): number {
  if (!Array.isArray(tools)) return 0
  return tools
    .filter(isSearchTool)
    .map(({ max_uses: most }) => (typeof most === 'number' ? Math.max(0, Math.ceil(most)) : usesUnlessLimited))
    .reduce((sum, most) => sum + most, 0)
}

/** Returns whether any `cache_control` has a lifetime of an hour. Iterative, because a body may be deep. */
function keepsForAnHour({ text, fields }: SourceBody): boolean {
  // An escape could spell it too. Most bodies have neither.
  if (!text.includes('1h') && !text.includes('\\u')) return false
  const open: unknown[] = [fields]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value !== 'object' || value === null) continue
    if ('ttl' in value && value.ttl === '1h') return true
    for (const inner of Object.values(value)) open.push(inner)
  }
  return false
}
