/** Usage and its exports, with 100,000 requests. */
import { setDefaultTimeout } from 'bun:test'
import { loadLongVariants } from '../harness/variants.ts'

setDefaultTimeout(240_000)

await loadLongVariants(() => import('../routes/usage.test.ts'))
