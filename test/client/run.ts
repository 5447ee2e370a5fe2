/**
 * Runs the checks in a runtime with processes: `CLIENT_CONTEXT` contains the URLs of library and gateway, stdout the
 * results as JSON.
 */
import { type Context, outcomes } from './checks.ts'

process.stdout.write(JSON.stringify(await outcomes(JSON.parse(process.env.CLIENT_CONTEXT ?? '') as Context)))
