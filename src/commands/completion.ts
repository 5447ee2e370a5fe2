/** `completion …`: scripts for shell completion, generated from the command table. They start no process on Tab. */
import { type Command, choice, choicesIn, command, print } from './command.ts'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/** Completions by the words before the cursor: `''`, `accounts`, `accounts create`. */
type Completions = ReadonlyMap<string, readonly Completion[]>
type Completion = { readonly word: string; readonly about: string; readonly values: readonly string[] | null }

/** Returns the command that prints a script. `load` returns all commands, this one included. */
export function completionCommands(load: () => Promise<readonly Command[]>): readonly Command[] {
  return [
    command({
      name: 'completion',
      about: 'Print a script for shell completion of `gateway`',
      operands: { shell: shells.join('|') },
      options: {},
      run: async ({ operands }) => print(completionScript(choice('The shell', operands.shell, shells), await load())),
    }),
  ]
}

/** Returns the script of a shell. */
export function completionScript(shell: Shell, commands: readonly Command[]): string {
  const all = getCompletions(commands)
  if (shell === 'fish') return fishScript(all)
  return shell === 'zsh' ? zshScript(all) : bashScript(all)
}

/** Returns completions for each beginning of a command line. */
function getCompletions(commands: readonly Command[]): Completions {
  const groups = Map.groupBy(commands, ({ name }) => name.split(' ')[0] ?? '')
  const isGroup = (own: readonly Command[]) => own.some(({ name }) => name.includes(' '))
  const word = (text: string, about: string): Completion => ({ word: text, about, values: null })
  const first = [...groups].map(([name, own]) =>
    word(name, isGroup(own) ? own.map(item => item.name.split(' ')[1]).join(', ') : (own[0]?.about ?? '')),
  )
  const seconds = [...groups]
    .filter(([, own]) => isGroup(own))
    .map(([name, own]) => [name, own.map(item => word(item.name.split(' ')[1] ?? '', item.about))] as const)
  const last = commands.map(item => [item.name, getArguments(item)] as const)
  return new Map([['', first], ...seconds, ...last])
}

function getArguments({ options, words }: Command): readonly Completion[] {
  return [
    ...words.map(word => ({ word, about: 'argument', values: null })),
    ...Object.entries(options).map(([name, { about, type, value = '' }]) => ({
      word: `--${name}`,
      about,
      values: type === 'boolean' ? null : choicesIn(value),
    })),
    { word: '--help', about: 'show help', values: null },
  ]
}

function bashScript(all: Completions): string {
  return `# bash completion for gateway. Load it:  source <(gateway completion bash)
_gateway() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at='' words=''
  local first=\${COMP_WORDS[1]} second=\${COMP_WORDS[2]}
${pathLines(all, '$COMP_CWORD', 2)}
  case "$at $previous" in
${valueCases(all, values => `COMPREPLY=($(compgen -W '${values}' -- "$current")); return`)}
  esac
  case "$at" in
${wordCases(all, list => `words='${list.map(({ word }) => word).join(' ')}'`)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _gateway gateway`
}

function zshScript(all: Completions): string {
  return `#compdef gateway
# zsh completion for gateway. Load it:  source <(gateway completion zsh)
_gateway() {
  local previous=\${words[CURRENT-1]} at='' first=\${words[2]} second=\${words[3]}
  local -a described
${pathLines(all, '$CURRENT', 3)}
  case "$at $previous" in
${valueCases(all, values => (values === '' ? '_files; return' : `compadd -- ${values}; return`))}
  esac
  case "$at" in
${wordCases(all, list => `described=(${list.map(completion => quoted(`${completion.word.replaceAll(':', '\\:')}:${completion.about}`)).join(' ')})`)}
  esac
  _describe gateway described
}
if (( $+functions[compdef] )); then compdef _gateway gateway; fi`
}

/** Sets `path` to the command words before the cursor. A command of one word ends after it. */
function pathLines(all: Completions, position: string, secondAt: number): string {
  const names = [...all.keys()]
  const long = names
    .filter(name => name.includes(' '))
    .join('|')
    .replaceAll(' ', '\\ ')
  const short = names.filter(name => name !== '' && !name.includes(' ')).join('|')
  return `  if (( ${position} >= ${secondAt} )); then case "$first" in ${short}) at=$first ;; *) at=none ;; esac; fi
  if (( ${position} > ${secondAt} )); then case "$first $second" in ${long}) at="$first $second" ;; esac; fi`
}

function valueCases(all: Completions, act: (values: string) => string): string {
  return [...all]
    .flatMap(([path, list]) =>
      list.flatMap(({ word, values }) =>
        values === null ? [] : [`    ${quoted(`${path} ${word}`)}) ${act(values.join(' '))} ;;`],
      ),
    )
    .join('\n')
}

function wordCases(all: Completions, act: (list: readonly Completion[]) => string): string {
  return [...all].map(([path, list]) => `    ${quoted(path)}) ${act(list)} ;;`).join('\n')
}

function fishScript(all: Completions): string {
  const lines = [...all].flatMap(([path, list]) => {
    const condition = quoted(`__gateway_at ${path}`.trimEnd())
    return list.map(({ word, about, values }) => {
      const flag = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`
      const value = values === null ? '' : values.length === 0 ? ' -r -F' : ` -x -a ${quoted(values.join(' '))}`
      return `complete -c gateway -n ${condition} ${flag}${value} -d ${quoted(about)}`
    })
  })
  return `# fish completion for gateway. Load it:  gateway completion fish | source
function __gateway_at
  set -l words (commandline -opc)[2..-1]
  set -l own (string match -v -- '-*' $words)
  switch "$own[1] $own[2]"
    case ${[...all.keys()]
      .filter(path => path.includes(' '))
      .map(quoted)
      .join(' ')}
      test "$own[1..2]" = "$argv"
    case '*'
      test "$own[1]" = "$argv"
  end
end
complete -c gateway -f
${lines.join('\n')}`
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
