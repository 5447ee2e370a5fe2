/** String formats: an example of each, and the pattern of prompt texts that may replace it. */
const examples: ReadonlyMap<unknown, readonly [example: string, form: RegExp]> = new Map([
  ['date', ['2026-01-31', /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])$/]],
  ['time', ['12:00:00Z', /^([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/]],
  ['date-time', ['2026-01-31T12:00:00Z', /^\d{4}-0[1-9]-[12]\dT[01]\d:[0-5]\d:[0-5]\dZ$/]],
  ['duration', ['PT1H', /^PT\d{1,4}H$/]],
  ['email', ['simulated@example.com', /^[\w+-]{1,64}@[a-z\d-]{1,63}(\.[a-z\d-]{1,63}){1,4}$/i]],
  ['hostname', ['example.com', /^[a-z\d]{1,63}(\.[a-z\d]{1,63}){1,4}$/i]],
  ['ipv4', ['192.0.2.1', /^(1?\d?\d\.){3}1?\d?\d$/]],
  ['ipv6', ['2001:db8::1', /^([\da-f]{1,4}:){7}[\da-f]{1,4}$/i]],
  ['uri', ['https://example.com/simulated', /^https?:\/\/[\w.-]{1,200}(\/[\w./?=&-]{0,500})?$/]],
  ['uri-reference', ['https://example.com/simulated', /^https?:\/\/[\w.-]{1,200}(\/[\w./?=&-]{0,500})?$/]],
  ['url', ['https://example.com/simulated', /^https?:\/\/[\w.-]{1,200}(\/[\w./?=&-]{0,500})?$/]],
  ['uuid', ['00000000-0000-4000-8000-000000000000', /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i]],
])

/** Returns the nth example; null for an unknown format, which is ignored. */
export function exampleOf(format: unknown, nth: number): string | null {
  const example = examples.get(format)?.[0]
  if (example === undefined) return null
  if (nth === 0) return example
  if (example.includes('simulated')) return example.replace('simulated', `simulated${nth + 1}`)
  if (format === 'hostname') return `host${nth + 1}.${example}`
  if (format === 'duration') return `PT${nth + 1}H`
  if (format === 'uuid') return example.slice(0, -4) + String(nth).padStart(4, '0')
  const digits = String((nth % 28) + 1).padStart(2, '0')
  if (format === 'time') return `12:${digits}:00Z`
  return String(format).startsWith('date')
    ? example.replace('-31', `-${digits}`)
    : example.replace(/1$/, String(nth + 1))
}

/** Returns true if a text has a format, or the format is unknown. */
export function isOfFormat(format: unknown, text: string): boolean {
  const known = examples.get(format)
  if (known === undefined) return true
  return text === known[0] || known[1].test(text) || (format === 'ipv6' && /^2001:db8::\d{1,3}$/.test(text))
}
