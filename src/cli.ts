/** The operator's commands: `bun run gateway <command>`. */
import packageJson from '../package.json'
import { execute } from './commands/execute.ts'
import { onOutputFailure } from './commands/run-command.ts'

process.stdout.on('error', onOutputFailure)
process.exitCode = await execute(process.argv.slice(2), packageJson.version)
