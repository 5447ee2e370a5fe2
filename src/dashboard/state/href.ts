import { signal } from '@preact/signals'
/** Returns the link to a route. Empty values are omitted. */
export function hrefTo(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const kept = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value] as [string, string]] : []))
  return `#/${path}${kept.length === 0 ? '' : `?${new URLSearchParams(kept)}`}`
}

/**
 * When the present view was opened, in epoch milliseconds. Ranges of hours end then: all parts of a page show the same
 * time, and a later render does not load them again.
 */
export const openedAt = signal(Date.now())

/** When the account was created, in epoch milliseconds: the sign-in sets it. */
export const accountCreatedAt = signal(0)

/** Moves a view that is left open over midnight to the new UTC day. */
export function moveToDay(now: number): void {
  const toDay = (time: number) => Math.floor(time / 86_400_000)
  if (toDay(now) !== toDay(openedAt.value)) openedAt.value = now
}
