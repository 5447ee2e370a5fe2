/** The operator's commands: `bun run gateway <command>`. */
import packageJson from '../package.json'
import { onOutputFailure } from './commands/command.ts'
import { execute } from './commands/execute.ts'

process.stdout.on('error', onOutputFailure)
process.exitCode = await execute(process.argv.slice(2), packageJson.version)
