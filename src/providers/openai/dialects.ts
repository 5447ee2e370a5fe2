/** Deviations of a known host. */
export type Dialect = {
  /** Tool call IDs that it accepts; others are renamed within the request. */
  readonly toolId: RegExp
  readonly seedField: 'seed' | 'random_seed'
  keyHeader(apiKey: string): Readonly<Record<string, string>>
  /** True if it requires the thought signature of each of its calls. */
  readonly signatures: boolean
}

const plain: Dialect = {
  toolId: /^/,
  seedField: 'seed',
  keyHeader: apiKey => ({ authorization: `Bearer ${apiKey}` }),
  signatures: false,
}
const official: Dialect = { ...plain, toolId: /^.{1,40}$/s }
const others: readonly (Dialect & { readonly host: RegExp; readonly name?: string })[] = [
  { ...plain, name: 'mistral', host: /(?:^|\.)mistral\.ai$/, toolId: /^[A-Za-z0-9]{9}$/, seedField: 'random_seed' },
  { ...plain, host: /\.azure\.com$/, keyHeader: apiKey => ({ 'api-key': apiKey }) },
  { ...plain, host: /\.googleapis\.com$/, signatures: true },
]

/** Returns the dialect of OpenAI itself, or of the compatible server with that name or on that host. */
export function dialectOf(hostname: string, isOfficial: boolean, named?: string): Dialect {
  if (isOfficial) return official
  return others.find(({ host, name }) => (named === undefined ? host.test(hostname) : name === named)) ?? plain
}
