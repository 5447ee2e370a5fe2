/**
 * Structured logs: one JSON line on stdout, or one readable line on a terminal. Fields are plain values named at the call
 * site; no object of ours, no header set, no error with its causes is ever handed in, so that no prompt, answer or key can
 * ride along (`security.md` L2).
 */

export type LogFields = Readonly<Record<string, string | number | boolean | null>>

export type Log = {
  debug(event: string, fields?: LogFields): void
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

const rank = { debug: 0, info: 1, warn: 2, error: 3 } as const
type Level = keyof typeof rank

/**
 * A log that writes lines at or above `level` through `write` (stdout as a rule).
 * `pretty` is for people at a terminal.
 */
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
      if (options.pretty) {
        const rest = Object.entries(fields).map(([name, value]) => `${name}=${value}`)
        options.write(`${[at.slice(11, 23), level.padEnd(5), event, ...rest].join(' ')}\n`)
      } else options.write(`${JSON.stringify({ at, level, event, ...fields })}\n`)
    }
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
}
