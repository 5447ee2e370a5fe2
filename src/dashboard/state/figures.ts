/** The figures of all pages: each has one label, one unit and one definition, which its tooltip shows. */
import { compact, formatCount, formatUsd, milliseconds, percent } from './format.ts'

type Figure = { readonly label: string; readonly about: string; readonly show: (value: number) => string }

export const figures = {
  requests: { label: 'Requests', about: 'Admitted requests, with failed and blocked ones', show: formatCount },
  failed: {
    label: 'Failed or blocked',
    about: 'Requests that failed or were blocked; client disconnects and rejected requests do not count',
    show: formatCount,
  },
  successRate: {
    label: 'Success rate',
    about: 'Completed requests among those that completed, failed or were blocked',
    show: value => percent(value, 1),
  },
  inputTokens: { label: 'Input', about: 'Input tokens, with cached ones', show: formatCount },
  cachedTokens: { label: 'Cached', about: 'Input tokens that the provider read from its cache', show: formatCount },
  outputTokens: { label: 'Output', about: 'Output tokens, with reasoning', show: formatCount },
  tokens: { label: 'Tokens', about: 'Input and output tokens', show: compact },
  cost: { label: 'Cost', about: 'US dollars that the account pays', show: formatUsd },
  saved: {
    label: 'Saved by routing and caching',
    about:
      'Each is what the bill would rise by without it. Routing: automatic requests at the baseline model with its prompt cache, minus their cost. Caching: the bill without prompt caches, minus the bill. Negative if more was paid.',
    show: formatUsd,
  },
  latency: {
    label: 'Latency (p50)',
    about: 'Half of the completed requests took at most this long, from receipt to the last token',
    show: milliseconds,
  },
  slowLatency: {
    label: 'Latency (p95)',
    about: '95% of the completed requests took at most this long, from receipt to the last token',
    show: milliseconds,
  },
  meanLatency: { label: 'Latency (mean)', about: 'Mean over completed requests', show: milliseconds },
  requestLatency: {
    label: 'Total latency',
    about: 'From receipt of this request to its last token',
    show: milliseconds,
  },
  firstToken: {
    label: 'Time to first token',
    about: 'From receipt of this request to its first content',
    show: milliseconds,
  },
  quality: {
    label: 'Quality',
    about: 'From 0 to 1: published benchmarks until your own results count',
    show: twoPlaces,
  },
  speed: { label: 'Speed', about: 'Output tokens per second', show: value => `${Math.round(value)} tok/s` },
  typicalCost: {
    label: '1,000 requests',
    about: 'US dollars for 1,000 requests of 1,000 input and 300 output tokens',
    show: formatUsd,
  },
} as const satisfies Readonly<Record<string, Figure>>

export type FigureName = keyof typeof figures

function twoPlaces(value: number): string {
  return value.toFixed(2)
}

type Saved = { readonly routing_saved_usd: number | null; readonly cache_saved_usd: number | null }

/** What routing and caching saved in sum; null = nothing to compare with. */
export function getSaved({ routing_saved_usd: routing, cache_saved_usd: cache }: Saved): number | null {
  return routing === null && cache === null ? null : (routing ?? 0) + (cache ?? 0)
}

export const tellSaved = ({ routing_saved_usd: routing, cache_saved_usd: cache }: Saved) =>
  `${formatUsd(routing ?? 0)} by routing, ${formatUsd(cache ?? 0)} by caching`

/** Returns the value as its figure is shown on all pages; null = none. */
export function showFigure(name: FigureName, value: number | null): string {
  return value === null ? '–' : figures[name].show(value)
}
