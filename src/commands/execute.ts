import { problemText } from '../deps/problems.ts'
import { accountCommands } from './accounts.ts'
import { analyzeCommands } from './analyze.ts'
import { type Command, CommandFailure, columns, print, UsageError } from './command.ts'
import { keyCommands } from './keys.ts'
import { modelCommands } from './models.ts'
import { serviceCommands } from './service.ts'
import { usageCommands } from './usage-rows.ts'

const commands: readonly Command[] = [
  ...serviceCommands,
  ...accountCommands,
  ...keyCommands,
  ...usageCommands,
  ...modelCommands,
  ...analyzeCommands,
]

/** Runs the command that `words` begin with. Resolves with the exit code: 2 = wrong words, 1 = it could not be done. */
export async function execute(words: readonly string[]): Promise<number> {
  const [chosen] = commands.filter(({ name }) => startsWith(words, name.split(' ')))
  const wantsHelp = words.length === 0 || words.includes('--help') || words.includes('-h') || words[0] === 'help'
  if (chosen === undefined) {
    const group = commands.filter(({ name }) => name.split(' ')[0] === words[0])
    if (wantsHelp && words.length > 0) return help(group)
    complain(
      words.length === 0 || group.length > 0
        ? 'Say what to do.'
        : `There is no command "${words.slice(0, 2).join(' ')}".`,
      overview(group),
    )
    return 2
  }
  if (wantsHelp) return help([chosen])
  try {
    await chosen.run(words.slice(chosen.name.split(' ').length))
    return 0
  } catch (cause) {
    if (cause instanceof UsageError) complain(cause.message, chosen.help)
    else complain(cause instanceof CommandFailure ? cause.message : problemText(cause))
    return cause instanceof UsageError ? 2 : 1
  }
}

/** Of one command all there is to say, of several a list. */
function help(about: readonly Command[]): number {
  const [only, another] = about
  print(only !== undefined && another === undefined ? only.help : overview(about))
  return 0
}

function overview(some: readonly Command[]): string {
  const listed = some.length === 0 ? commands : some
  return [
    'bun run gateway <command>; --help after a command says more.',
    '',
    ...columns(listed.map(({ name, about }) => [`  ${name}`, about])),
  ].join('\n')
}

function complain(...lines: readonly string[]): void {
  process.stderr.write(`${lines.join('\n\n')}\n`)
}

function startsWith(words: readonly string[], beginning: readonly string[]): boolean {
  return beginning.every((word, index) => words[index] === word)
}
