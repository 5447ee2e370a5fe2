/** Faults of a provider's responses, with a stream cut at 250 places and 20 concurrent requests. */
import { setDefaultTimeout } from 'bun:test'
import { loadLongVariants } from '../harness/variants.ts'

setDefaultTimeout(240_000)

await loadLongVariants(() => import('../request/upstream-faults.test.ts'))
