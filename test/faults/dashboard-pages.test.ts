/** The pages of the dashboard, at more widths and in both themes. */
import { setDefaultTimeout } from 'bun:test'
import { loadLongVariants } from '../harness/variants.ts'

setDefaultTimeout(240_000)

await loadLongVariants(() => import('../dashboard/pages.test.ts'))
