import { signal } from '@preact/signals'

/**
 * When the present view was opened, in epoch milliseconds. Ranges of hours end then: all parts of a page show the same
 * time, and a later render does not load them again.
 */
export const openedAt = signal(Date.now())
