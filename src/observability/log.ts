/**
 * Structured logs: one JSON line on stdout, or one readable line on a terminal. Fields are plain values named at the
 * call site; objects, headers and errors are never passed, so that no prompt, output or key can leak. Only the field
 * names below are allowed: others are withheld, and what looks like a secret is removed from any value.
 */

import type { Log, LogFields } from '../core/ports.ts'
import { printableText } from '../core/text/safe-name.ts'

const rank = { debug: 0, info: 1, warn: 2, error: 3 } as const
type Level = keyof typeof rank

/** Every field that a line may have. None holds text of a client or a model. */
export const loggedFields: ReadonlySet<string> = new Set([
  ...['request_id', 'account_id', 'user_id', 'session_id', 'event_id', 'invoice_id'],
  ...[
    'provider',
    'model',
    'key',
    'via',
    'back_end',
    'kind',
    'code',
    'status',
    'outcome',
    'attempts',
    'streamed',
    'signal',
    'detail',
  ],
  ...['input_tokens', 'output_tokens', 'billed_microcents', 'owed', 'billed', 'shortfall', 'total_cents'],
  ...['latency_ms', 'duration_ms', 'first_token_ms', 'started_in_ms', 'replaced_in_ms', 'month'],
  ...['backlog', 'failures', 'records', 'locks', 'tries', 'waiting'],
  ...['kinds', 'masked', 'counts_as', 'after_failures', 'source', 'names', 'names_kept'],
  ...['host', 'port', 'version', 'worker', 'workers', 'warning'],
  ...['state', 'until', 'successor', 'count'],
])

const withheld = '[withheld]'
/** A detail is a sentence. A longer one contains something that it should not. */
const maximumCharacters = 2_000

/**
 * Patterns of secrets: the gateway's keys and tokens, keys of providers and payment processors, credentials in a URL.
 */
const secrets: readonly (readonly [RegExp, string])[] = [
  [/\bgw_(live|refresh|reset|invite)_[\w-]+/g, 'gw_$1_…'],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, 'eyJ…'],
  [/\b((?:sk|rk|pk|whsec|xai|gsk)[_-])[\w-]{8,}/g, '$1…'],
  [/\bAIza[\w-]{20,}/g, 'AIza…'],
  [/\b(bearer|basic) +[\w.~+/=-]{8,}/gi, '$1 …'],
  [/(:\/\/)[^\s/@]+@/g, '$1…@'],
]

/** Creates a log that writes lines at or above `level` through `write` (usually stdout). `pretty` is for terminals. */
export function createLog(options: {
  readonly level: Level
  readonly pretty: boolean
  readonly now: () => number
  readonly write: (line: string) => void
}): Log {
  const line =
    (level: Level) =>
    (event: string, fields: LogFields = {}) => {
      if (rank[level] < rank[options.level]) return
      const at = new Date(options.now()).toISOString()
      const shown = Object.entries(fields).map(([name, value]) => [name, loggable(name, value)] as const)
      if (options.pretty) {
        const rest = shown.map(([name, value]) => `${name}=${printableText(String(value))}`)
        options.write(`${[at.slice(11, 23), level.padEnd(5), event, ...rest].join(' ')}\n`)
      } else options.write(`${JSON.stringify({ at, level, event, ...Object.fromEntries(shown) })}\n`)
    }
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
}

/** Creates the log of a process: JSON lines on stdout, or readable lines on a terminal. */
export function consoleLog(level: Level): Log {
  return createLog({
    level,
    pretty: process.stdout.isTTY,
    now: Date.now,
    write: line => process.stdout.write(line),
  })
}

function loggable(name: string, value: LogFields[string] | undefined): LogFields[string] {
  if (!loggedFields.has(name)) return withheld
  if (typeof value !== 'string') return value ?? null
  return secrets.reduce((text, [pattern, instead]) => text.replace(pattern, instead), value).slice(0, maximumCharacters)
}
