/** Deviations of a known host. */
export type Dialect = {
  /** Tool call IDs that it accepts; others are renamed within the request. */
  readonly toolId: RegExp
  readonly seedField: 'seed' | 'random_seed'
  keyHeader(apiKey: string): Readonly<Record<string, string>>
  /** Fields in which it reads the reasoning text of earlier turns. */
  readonly reasoningFields: readonly ('reasoning' | 'reasoning_content')[]
  /** True if it reads `reasoning_details`. */
  readonly reasoningDetails: boolean
  /** True if it caches the input of some models at marks in its parts. */
  readonly cacheMarks: boolean
  /** True if it requires the thought signature of each of its calls. */
  readonly signatures: boolean
  /** True if it pads each event of a stream unless it is asked not to; no two events then have the same beginning and end. */
  readonly padsEvents: boolean
}

const plain: Dialect = {
  toolId: /^/,
  seedField: 'seed',
  keyHeader: apiKey => ({ authorization: `Bearer ${apiKey}` }),
  reasoningFields: ['reasoning_content'],
  reasoningDetails: false,
  cacheMarks: false,
  signatures: false,
  padsEvents: false,
}
const official: Dialect = { ...plain, toolId: /^.{1,40}$/s }
const openai: Dialect = { ...official, padsEvents: true }
const reasoning = { ...plain, reasoningFields: ['reasoning'] } satisfies Dialect
const others: readonly (Dialect & { readonly host: RegExp; readonly name?: DialectName })[] = [
  { ...plain, name: 'mistral', host: /(?:^|\.)mistral\.ai$/, toolId: /^[A-Za-z0-9]{9}$/, seedField: 'random_seed' },
  { ...plain, host: /\.azure\.com$/, keyHeader: apiKey => ({ 'api-key': apiKey }) },
  { ...plain, host: /\.googleapis\.com$/, signatures: true },
  { ...reasoning, name: 'openrouter', host: /(?:^|\.)openrouter\.ai$/, reasoningDetails: true, cacheMarks: true },
  { ...reasoning, name: 'groq', host: /(?:^|\.)groq\.com$/ },
  { ...reasoning, name: 'cerebras', host: /(?:^|\.)cerebras\.ai$/ },
  { ...reasoning, name: 'ollama', host: /^ollama$/ },
  // Newer releases read the first, chat templates of models the second.
  { ...plain, name: 'vllm', host: /^vllm$/, reasoningFields: ['reasoning', 'reasoning_content'] },
]

/** Names for servers under any base URL. */
type DialectName = 'mistral' | 'openrouter' | 'groq' | 'cerebras' | 'ollama' | 'vllm'

/** Returns the dialect of OpenAI itself, or of the compatible server with that name or on that host. */
export function getDialect(hostname: string, isOfficial: boolean, named?: string): Dialect {
  // Another host with OpenAI's models may refuse what it does not know.
  if (isOfficial) return hostname === 'api.openai.com' ? openai : official
  return others.find(({ host, name }) => (named === undefined ? host.test(hostname) : name === named)) ?? plain
}
