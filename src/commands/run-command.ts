import { ConfigError } from '../config/config.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { describeError } from '../core/validation/operator-errors.ts'
import { type Command, CommandFailure, print, UsageError } from './command.ts'

/**
 * Runs one command, or prints its help. Returns the exit code: 2 = wrong arguments, 1 = failed. A closed output pipe
 * (`| head`) counts as success. With `--json` an error is one JSON object on stderr.
 */
export async function runCommand(command: Command, words: readonly string[]): Promise<number> {
  try {
    if (wantsHelp(words)) print(command.help)
    else await command.run(words)
    return 0
  } catch (cause) {
    if (isClosedPipe(cause)) return 0
    if (wantsJson(words)) printJsonError(cause)
    else if (cause instanceof UsageError) printError(cause.message, command.help)
    else printError(cause instanceof CommandFailure ? cause.message : describeError(cause))
    return cause instanceof UsageError ? 2 : 1
  }
}

export function wantsHelp(words: readonly string[]): boolean {
  return words.includes('--help') || words.includes('-h') || words[0] === 'help'
}

export function wantsJson(words: readonly string[]): boolean {
  return words.includes('--json')
}

/** Writes an error for programs. `problems` are the lines of a wrong configuration. */
export function printJsonError(cause: unknown): void {
  const message = cause instanceof UsageError || cause instanceof CommandFailure ? cause.message : describeError(cause)
  const problems = cause instanceof ConfigError ? { problems: cause.problems } : {}
  printError(JSON.stringify({ error: { code: codeOf(cause), message, ...problems } }))
}

function codeOf(cause: unknown): string {
  if (cause instanceof UsageError) return 'wrong_arguments'
  if (cause instanceof ConfigError) return 'wrong_configuration'
  return cause instanceof GatewayError ? cause.code : 'command_failed'
}

export function printError(...lines: readonly string[]): void {
  process.stderr.write(`${lines.join('\n\n')}\n`)
}

/** Handles failed writes to stdout, whose `error` event would end in a stack trace without a listener. */
export function onOutputFailure(cause: Error): void {
  if (isClosedPipe(cause)) return
  printError(describeError(cause))
  process.exitCode = 1
}

function isClosedPipe(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'EPIPE'
}
