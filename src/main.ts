/** Config → a gateway in this process, or the parent of several. */
import { cannotStart } from './cannot-start.ts'
import { readConfig } from './config.ts'

const config = await Promise.try(readConfig).catch(cannotStart)

// Each loads what it needs: a parent serves nothing, and holds nothing of what serving takes.
if (config.workers > 1) await (await import('./workers.ts')).superviseWorkers(config)
else await (await import('./serve.ts')).serve(config)
