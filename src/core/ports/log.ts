/** Fields of a log line: only plain values, so that no prompt, output or key can be part of one. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>

export type Log = {
  debug(event: string, fields?: LogFields): void
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}
