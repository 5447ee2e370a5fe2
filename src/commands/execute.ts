import { accountCommands } from './accounts.ts'
import { analyzeCommands } from './analyze.ts'
import { type Command, columns, print } from './command.ts'
import { keyCommands } from './keys.ts'
import { modelCommands } from './models.ts'
import { complain, runCommand, wantsHelp } from './run-command.ts'
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
export async function execute(words: readonly string[], version: string): Promise<number> {
  if (words[0] === '--version') return told(version)
  const [chosen] = commands.filter(({ name }) => startsWith(words, name.split(' ')))
  if (chosen !== undefined) return runCommand(chosen, words.slice(chosen.name.split(' ').length))
  if (wantsHelp(words.slice(0, 1))) return told(overview(commands))
  const group = commands.filter(({ name }) => name.split(' ')[0] === words[0])
  if (group.length > 0 && wantsHelp(words.slice(1))) return told(overview(group))
  const named = words.slice(0, 2).filter((word, index) => index === 0 || !word.startsWith('-'))
  const isUnfinished = words.length === (group.length > 0 ? 1 : 0)
  complain(
    isUnfinished ? 'Say what to do.' : `There is no command "${named.join(' ')}".`,
    overview(group.length > 0 ? group : commands),
  )
  return 2
}

function told(text: string): number {
  print(text)
  return 0
}

function overview(some: readonly Command[]): string {
  return [
    'bun run gateway <command>; --help after a command says more.',
    '',
    ...columns(some.map(({ name, about }) => [`  ${name}`, about])),
  ].join('\n')
}

function startsWith(words: readonly string[], beginning: readonly string[]): boolean {
  return beginning.every((word, index) => words[index] === word)
}
