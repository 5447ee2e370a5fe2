import { signal } from '@preact/signals'

/**
 * When the present view was opened, in epoch milliseconds. Ranges of hours end then: all parts of a page show the same
 * time, and a later render does not load them again.
 */
export const openedAt = signal(Date.now())

/** Moves a view that is left open over midnight to the new UTC day. */
export function moveToDay(now: number): void {
  const dayOf = (time: number) => Math.floor(time / 86_400_000)
  if (dayOf(now) !== dayOf(openedAt.value)) openedAt.value = now
}
