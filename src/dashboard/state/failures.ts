/** Errors of what a page loads, gathered so that one cause shows one notice. */
import { computed, signal } from '@preact/signals'
import type { RequestError } from './api-error.ts'

type Failed = { readonly failure: RequestError; reload(): void }

const failed = signal<readonly Failed[]>([])

/** Reports an error until the returned function is called. */
export function reportPageFailure(one: Failed): () => void {
  failed.value = [...failed.peek(), one]
  return () => {
    failed.value = failed.peek().filter(other => other !== one)
  }
}

/** The errors of the page, one per cause. `reload` loads everything again that the cause has hit. */
export const pageFailures = computed(() =>
  [...Map.groupBy(failed.value, ({ failure: { code, message } }) => `${code} ${message}`).values()].flatMap(group => {
    const [first] = group
    if (first === undefined) return []
    return [{ failure: first.failure, reload: () => group.map(one => one.reload()) }]
  }),
)

globalThis.addEventListener('online', () => {
  for (const { failure, reload } of pageFailures.peek()) if (failure.code === 'offline') reload()
})
