/** A command is a row that describes its arguments. Parsing, help text and types are derived from it. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ConfigError } from '../config/config.ts'
import { randomBase62 } from '../core/accounts/api-keys.ts'
import { GatewayError, shellCommand } from '../core/validation/errors.ts'
import { describeError, systemErrorText } from '../core/validation/operator-errors.ts'

type Option = {
  readonly type: 'string' | 'boolean'
  /** Placeholder of the value in the help text; strings only. */
  readonly value?: string
  readonly about: string
}
type Options = Readonly<Record<string, Option>>

export type Command = {
  /** As typed: `accounts create`. */
  readonly name: string
  readonly about: string
  readonly help: string
  readonly options: Options
  /** Words that an argument can be, for shell completion; empty = any text. */
  readonly words: readonly string[]
  /** Rejects with `UsageError` for wrong arguments, with `CommandFailure` or a store's error if the command fails. */
  run(words: readonly string[]): Promise<void>
}

/** Wrong arguments: nothing was done. */
export class UsageError extends Error {}

/** The command cannot be executed. The message states the reason and what to do. */
export class CommandFailure extends Error {}

/** `--json`: machine-readable output. */
export const json = { type: 'boolean', about: 'print JSON' } as const

/**
 * Creates a command from its row. `operands` maps each required argument to its name in the usage line, `program`
 * precedes it there. `further` are optional arguments after those, each at most once.
 */
export function command<const Operand extends string, const Taken extends Options>(row: {
  readonly name: string
  readonly about: string
  readonly operands: Readonly<Record<Operand, string>>
  readonly further?: readonly string[]
  readonly program?: string
  readonly options: Taken
  readonly run: (given: {
    readonly operands: Readonly<Record<Operand, string>>
    readonly further: readonly string[]
    readonly options: { readonly [Name in keyof Taken]?: Taken[Name]['type'] extends 'boolean' ? boolean : string }
  }) => Promise<void>
}): Command {
  const operandNames = Object.keys(row.operands)
  return {
    name: row.name,
    about: row.about,
    help: getHelp(row),
    options: row.options,
    words: [...Object.values<string>(row.operands).flatMap(choicesIn), ...(row.further ?? [])],
    async run(words) {
      const { values, positionals } = parsed(words, row.options)
      const missing = operandNames[positionals.length]
      if (missing !== undefined) throw new UsageError(`Missing argument ${getDisplayName(row.operands, missing)}.`)
      const further = positionals.slice(operandNames.length)
      const extra = further.find(word => row.further?.includes(word) !== true)
      if (extra !== undefined) throw new UsageError(wrongWord(extra, row.further))
      const operands = Object.fromEntries(operandNames.map((name, index) => [name, positionals[index] ?? '']))
      // The parser has checked both against the row that these types are derived from.
      type Given = Parameters<typeof row.run>[0]
      return row.run({ operands: operands as Given['operands'], further, options: values as Given['options'] })
    },
  }
}

/** Returns one of the choices. Throws a `UsageError` with the choices otherwise. */
export function choice<const T extends string>(name: string, value: string, choices: readonly T[]): T {
  const chosen = choices.find(item => item === value)
  if (chosen === undefined) throw new UsageError(`${name} must be ${choices.join(' or ')}.`)
  return chosen
}

/** Returns the choices of a placeholder such as `evaluation|usage`; empty if it names a kind of text (`FILE|URL`). */
export function choicesIn(placeholder: string): readonly string[] {
  return /^[a-z][a-z0-9-]*(\|[a-z][a-z0-9-]*)+$/.test(placeholder) ? placeholder.split('|') : []
}

function wrongWord(word: string, choices: readonly string[] | undefined): string {
  return choices === undefined
    ? `Unexpected argument "${word}".`
    : `Invalid value "${word}"; use ${choices.join(', ')}.`
}

function parsed(words: readonly string[], options: Options) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true })
  } catch (cause) {
    // The parser's messages continue with general advice; the first sentence is sufficient.
    throw new UsageError(
      cause instanceof Error ? (cause.message.split(/\.\s/)[0] ?? '').replace(/\.?$/, '.') : 'wrong usage',
    )
  }
}

function getHelp(row: {
  readonly name: string
  readonly about: string
  readonly operands: Readonly<Record<string, string>>
  readonly further?: readonly string[]
  readonly program?: string
  readonly options: Options
}): string {
  const rows = Object.entries(row.options).map(([name, option]) => [`  ${optionFace(name, option)}`, option.about])
  const further = row.further === undefined ? [] : [`[${row.further.join('|')} …]`]
  const usage = [row.name, ...Object.values(row.operands), ...further, ...(rows.length > 0 ? ['[options]'] : [])]
  return [
    row.program === undefined ? shellCommand(usage.join(' ')) : `${row.program} ${usage.join(' ')}`,
    '',
    `${row.about}.`,
    ...(rows.length > 0 ? ['', ...columns(rows)] : []),
  ].join('\n')
}

const optionFace = (name: string, { value }: Option) => `--${name}${value === undefined ? '' : ` ${value}`}`
const getDisplayName = (operands: Readonly<Record<string, string>>, name: string) => operands[name] ?? name

/** Formats rows with aligned columns. Removes control characters, so that a name cannot control the terminal. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const clean = rows.map(row => row.map(cell => cell.replace(/\p{Cc}/gu, '')))
  const widths = clean[0]?.map((_, column) => Math.max(...clean.map(row => row[column]?.length ?? 0))) ?? []
  return clean.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Returns the bytes of a file that an argument names. */
export function readNamedFile(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new CommandFailure(`Cannot read ${path}: ${systemErrorText(cause)}.`)
  }
}

/** Returns a new ID with this prefix. */
export const newId = (prefix: string) => `${prefix}_${randomBase62(20, randomBytes)}`

/** Writes lines for people. */
export function print(...lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`)
}

/** Writes rows with aligned columns. */
export function printTable(rows: readonly (readonly string[])[]): void {
  print(...columns(rows))
}

/** Writes one JSON value for programs. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2))
}

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
  printError(JSON.stringify({ error: { code: getCode(cause), message, ...problems } }))
}

function getCode(cause: unknown): string {
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
