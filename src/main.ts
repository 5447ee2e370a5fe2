/** Config → a gateway in this process, or the parent of several. */

import { readConfig } from './config.ts'
import { exitWithStartupError } from './server/startup-error.ts'

const config = await Promise.try(readConfig).catch(exitWithStartupError)

// Each loads what it needs: a parent serves nothing, and holds nothing of what serving takes.
if (config.workers > 1) await (await import('./server/workers.ts')).superviseWorkers(config)
else await (await import('./server/serve.ts')).serve(config)
