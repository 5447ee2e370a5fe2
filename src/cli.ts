/** The operator's commands: `bun run gateway <command>`. */
import { execute } from './commands/execute.ts'

process.exitCode = await execute(process.argv.slice(2))
