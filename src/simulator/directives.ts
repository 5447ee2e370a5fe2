/**
 * Directives for a simulated provider in a prompt: `[[sim:tokens=200, pace_ms=20]]` in any user message. One table
 * defines the grammar, the types, and the document of `GET /simulator/directives`.
 */

/**
 * `flag` has no value, `number` is an integer from 0 to 1,000,000, `text` is anything without `,` or brackets;
 * otherwise one of the listed values.
 */
type DirectiveRow = { readonly name: string; readonly value: string; readonly meaning: string }

export const directives = [
  {
    name: 'only',
    value: 'text',
    meaning: 'the group holds for this provider, model or API key only; several are joined with `|`',
  },
  {
    name: 'times',
    value: 'number',
    meaning: 'the group holds for the first so many requests that carry it; needs `key`',
  },
  { name: 'key', value: 'text', meaning: 'a nonce by which `times` tells one test from another' },

  { name: 'tokens', value: 'number', meaning: 'length of the answer in tokens of about 4 characters' },
  { name: 'chunk', value: 'number', meaning: 'characters per piece of a streamed answer' },
  {
    name: 'pace_ms',
    value: 'number',
    meaning: 'milliseconds between pieces; a JSON answer takes as long as its stream would',
  },
  { name: 'slow_headers_ms', value: 'number', meaning: 'milliseconds before the status line' },
  { name: 'first_ms', value: 'number', meaning: 'milliseconds between the headers and the first content' },
  { name: 'reasoning', value: 'number', meaning: 'reasoning tokens, whatever effort was asked for' },
  { name: 'redacted', value: 'flag', meaning: 'Anthropic: the text of the reasoning is withheld' },
  { name: 'server_tool', value: 'flag', meaning: 'Anthropic: searches on its own side, and cites what it found' },
  { name: 'tool', value: 'text', meaning: 'calls the tool of that name, offered or not' },
  { name: 'parallel', value: 'number', meaning: 'so many tool calls, going round the tools offered' },
  { name: 'preamble', value: 'flag', meaning: 'text before the tool calls' },
  { name: 'empty', value: 'flag', meaning: 'an answer without content' },
  { name: 'refusal', value: 'flag', meaning: 'the model refuses, in the way its format has for that' },
  {
    name: 'finish',
    value: 'stop|length|tool_calls|content_filter',
    meaning: 'reports that end, whatever was generated',
  },
  { name: 'content_filter', value: 'flag', meaning: "the provider's filter stops the answer half-way" },
  { name: 'ignore_cap', value: 'flag', meaning: 'generates past the output cap' },
  { name: 'served', value: 'text', meaning: 'names that model as the one that served' },

  { name: 'cached', value: 'number', meaning: 'so many of the input tokens count as read from the cache' },
  { name: 'cache_write', value: 'number', meaning: 'so many of the input tokens count as written to the cache' },
  { name: 'no_usage', value: 'flag', meaning: 'no token counts' },
  { name: 'usage_zero', value: 'flag', meaning: 'all token counts 0' },
  { name: 'usage_absurd', value: 'flag', meaning: 'token counts of 10^12' },
  { name: 'usage_negative', value: 'flag', meaning: 'token counts of -5' },
  { name: 'usage_nan', value: 'flag', meaning: 'token counts that are not numbers' },

  { name: 'status', value: 'number', meaning: "fails with that status and the provider's body for it" },
  { name: 'retry_after', value: 'number', meaning: 'seconds that a failure asks to wait, in the way of the provider' },
  { name: 'quota', value: 'flag', meaning: '429 that no waiting helps: billing or a daily quota' },
  { name: 'context_overflow', value: 'flag', meaning: '400: the prompt is too long' },
  { name: 'content_block', value: 'flag', meaning: "the provider's filter refuses the prompt" },
  { name: 'model_missing', value: 'flag', meaning: '404: no such model' },
  { name: 'html', value: 'flag', meaning: '200 with a page of HTML' },

  { name: 'hang', value: 'flag', meaning: 'accepts the request and never answers' },
  { name: 'cut', value: 'flag', meaning: 'closes the connection before the headers' },
  { name: 'reset', value: 'flag', meaning: 'resets the connection before the headers' },

  { name: 'cut_after', value: 'number', meaning: 'closes the connection after so many pieces of content' },
  { name: 'reset_after', value: 'number', meaning: 'resets the connection after so many pieces of content' },
  { name: 'hang_after', value: 'number', meaning: 'falls silent after so many pieces of content' },
  { name: 'error_after', value: 'number', meaning: 'an error frame after so many pieces of content, then the end' },
  { name: 'malformed_after', value: 'number', meaning: 'a frame of broken JSON after so many pieces of content' },
  { name: 'no_terminal', value: 'flag', meaning: 'the stream ends in good order without finish reason or last event' },

  { name: 'framing', value: 'chunked|close|length', meaning: 'how the end of the body is marked' },
  { name: 'gzip', value: 'flag', meaning: 'compresses the body, streams included' },
  { name: 'slice', value: 'number', meaning: 'writes the body in pieces of so many bytes, wherever events begin' },
] as const satisfies readonly DirectiveRow[]

type Row = (typeof directives)[number]
type Choice<Names extends string> = Names extends `${infer Head}|${infer Rest}` ? Head | Choice<Rest> : Names
type DirectiveValue<Kind extends string> = Kind extends 'flag'
  ? true
  : Kind extends 'number'
    ? number
    : Kind extends 'text'
      ? string
      : Choice<Kind>

/** The directives of one request by name; absent ones are omitted. */
export type Directives = { readonly [Name in Row['name']]?: DirectiveValue<Extract<Row, { name: Name }>['value']> }

/** One `[[sim:…]]`, with its text as the key for `times`. */
type DirectiveGroup = { readonly text: string; readonly values: Directives }

type ReadDirectives =
  | { readonly kind: 'read'; readonly groups: readonly DirectiveGroup[] }
  /** Reported to the client: with a mistyped fault that never occurs, a test would pass without testing anything. */
  | { readonly kind: 'problem'; readonly message: string }

const groupPattern = /\[\[sim:([^[\]]{0,1000})\]\]/g
const largestNumber = 1_000_000
const rows: ReadonlyMap<string, DirectiveRow> = new Map(directives.map(row => [row.name, row]))

/** Reads the directive groups of all texts in order. */
export function readDirectives(texts: readonly string[]): ReadDirectives {
  const groups: DirectiveGroup[] = []
  for (const text of texts) {
    for (const [whole, inside = ''] of text.matchAll(groupPattern)) {
      const values: Record<string, string | number | true> = {}
      for (const entry of inside.split(',')) {
        const [name = '', ...rest] = entry.split('=').map(part => part.trim())
        const value = readValue(rows.get(name)?.value, rest.length === 0 ? null : rest.join('='))
        if (value === null) return { kind: 'problem', message: problemWith(name, entry.trim()) }
        values[name] = value
      }
      groups.push({ text: whole, values: values as Directives })
    }
  }
  return { kind: 'read', groups }
}

/** Returns the text without directives. */
export function withoutDirectives(text: string): string {
  return text.replace(groupPattern, '').trim()
}

/**
 * Returns the merged directives for this provider, model and API key, later ones overriding earlier ones. `countUse` is
 * called for groups with `times` and returns how often the key has been seen, including now.
 */
export function findDirectives(
  groups: readonly DirectiveGroup[],
  { provider, model, apiKey }: { readonly provider: string; readonly model: string; readonly apiKey: string },
  countUse: (key: string) => number,
): Directives {
  const names = [provider, model, `${provider}/${model}`, apiKey]
  const holding = groups.filter(({ text, values: { only, times, key } }) => {
    if (only !== undefined && !only.split('|').some(name => names.includes(name.trim()))) return false
    return times === undefined || countUse(`${key ?? ''} ${text}`) <= times
  })
  return Object.assign({}, ...holding.map(group => group.values))
}

function readValue(kind: string | undefined, value: string | null): string | number | true | null {
  switch (kind) {
    case undefined:
      return null
    case 'flag':
      return value === null ? true : null
    case 'number':
      return value !== null && /^\d{1,7}$/.test(value) && Number(value) <= largestNumber ? Number(value) : null
    case 'text':
      return value === null || value === '' ? null : value
    default:
      return value !== null && kind.split('|').includes(value) ? value : null
  }
}

function problemWith(name: string, entry: string): string {
  const row = rows.get(name)
  if (row === undefined) return `[simulated] unknown directive in "${entry}"; GET /simulator/directives lists them`
  return `[simulated] directive "${entry}": "${name}" takes ${row.value === 'flag' ? 'no value' : row.value}`
}
