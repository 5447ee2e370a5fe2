/** Runs the checks in a runtime that has processes: `CLIENT_CONTEXT` says where library and gateway are, JSON on stdout how they went. */
import { type Context, outcomes } from './checks.ts'

process.stdout.write(JSON.stringify(await outcomes(JSON.parse(process.env.CLIENT_CONTEXT ?? '') as Context)))
