/** Faults of a provider's responses, with a stream cut at 250 places, 20 concurrent requests, and 10,000 texts that are continued. */
import { setDefaultTimeout } from 'bun:test'
import { loadLongVariants } from '../harness/variants.ts'

setDefaultTimeout(240_000)

await loadLongVariants(
  () => import('../request/upstream-faults.test.ts'),
  () => import('../request/continuation.test.ts'),
)
