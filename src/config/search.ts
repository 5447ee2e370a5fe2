import type { EnvironmentReader } from './environment.ts'

export type SearchSettings =
  | { readonly id: 'searxng'; readonly baseUrl: string }
  | { readonly id: 'brave' | 'tavily'; readonly baseUrl: string | null; readonly apiKey: string }

/** Returns the back ends for web search in calling order. */
export function readSearch(read: EnvironmentReader): readonly SearchSettings[] {
  const settings: SearchSettings[] = []
  const searxng = read.baseUrl('SEARXNG_URL')
  if (searxng !== null) settings.push({ id: 'searxng', baseUrl: searxng })
  for (const [id, name] of [
    ['brave', 'BRAVE'],
    ['tavily', 'TAVILY'],
  ] as const) {
    const apiKey = read.secret(`${name}_API_KEY`)
    const baseUrl = read.baseUrl(`${name}_BASE_URL`)
    if (apiKey !== null) settings.push({ id, baseUrl, apiKey })
  }
  return settings
}
