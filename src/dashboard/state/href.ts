/** Returns the link to a route. Empty values are omitted. */
export function hrefTo(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const kept = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value] as [string, string]] : []))
  return `#/${path}${kept.length === 0 ? '' : `?${new URLSearchParams(kept)}`}`
}
