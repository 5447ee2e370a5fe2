import { shellCommand } from '../core/validation/errors.ts'
import {
  type Command,
  columns,
  print,
  printError,
  printJsonError,
  runCommand,
  UsageError,
  wantsHelp,
  wantsJson,
} from './command.ts'

/** Files of commands by their first words, so that a command loads only its own dependencies. */
const files: readonly { readonly words: readonly string[]; readonly load: () => Promise<readonly Command[]> }[] = [
  { words: ['serve', 'migrate'], load: async () => (await import('./service.ts')).serviceCommands },
  { words: ['accounts'], load: async () => (await import('./accounts.ts')).accountCommands },
  { words: ['accounts', 'users'], load: async () => (await import('./erase.ts')).eraseCommands },
  { words: ['keys'], load: async () => (await import('./keys.ts')).keyCommands },
  { words: ['provider-keys'], load: async () => (await import('./provider-keys.ts')).providerKeyCommands },
  { words: ['projects'], load: async () => (await import('./projects.ts')).projectCommands },
  { words: ['rules', 'constraints'], load: async () => (await import('./policy.ts')).policyCommands },
  { words: ['usage'], load: async () => (await import('./usage.ts')).usageCommands },
  { words: ['models'], load: async () => (await import('./models.ts')).modelCommands },
  { words: ['reload', 'config'], load: async () => (await import('./service.ts')).reloadCommands },
  { words: ['analyze'], load: async () => (await import('./analyze.ts')).analyzeCommands },
  { words: ['import'], load: async () => (await import('./import-litellm.ts')).importCommands },
  { words: ['doctor'], load: async () => (await import('./doctor.ts')).doctorCommands },
  { words: ['completion'], load: async () => (await import('./completion.ts')).completionCommands(() => load('')) },
]

/** Runs the command that `words` begin with. Returns the exit code: 2 = wrong arguments, 1 = failed. */
export async function execute(words: readonly string[], version: string): Promise<number> {
  if (words[0] === '--version') return printAndSucceed(version)
  const commands = await load(words[0] ?? '')
  const [chosen] = commands.filter(({ name }) => startsWith(words, name.split(' ')))
  if (chosen !== undefined) return runCommand(chosen, words.slice(chosen.name.split(' ').length))
  if (wantsHelp(words.slice(0, 1))) return printAndSucceed(overview(commands))
  const group = commands.filter(({ name }) => name.split(' ')[0] === words[0])
  if (group.length > 0 && wantsHelp(words.slice(1))) return printAndSucceed(overview(group))
  const named = words.slice(0, 2).filter((word, index) => index === 0 || !word.startsWith('-'))
  const isUnfinished = words.length === (group.length > 0 ? 1 : 0)
  const problem = isUnfinished ? 'Missing command.' : `Unknown command "${named.join(' ')}".`
  if (wantsJson(words)) printJsonError(new UsageError(problem))
  else printError(problem, overview(group.length > 0 ? group : commands))
  return 2
}

/** Returns the commands that may start with a word; all commands if none does. */
async function load(word: string): Promise<readonly Command[]> {
  const own = files.filter(({ words }) => words.includes(word))
  const loaded = await Promise.all((own.length > 0 ? own : files).map(({ load }) => load()))
  return loaded.flat()
}

function printAndSucceed(text: string): number {
  print(text)
  return 0
}

function overview(some: readonly Command[]): string {
  return [
    `${shellCommand('<command>')}; add --help for details`,
    '',
    ...columns(some.map(({ name, about }) => [`  ${name}`, about])),
  ].join('\n')
}

function startsWith(words: readonly string[], beginning: readonly string[]): boolean {
  return beginning.every((word, index) => words[index] === word)
}
