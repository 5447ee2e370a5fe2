/** Shell completion: scripts made from a table, and those of the real table as the shells run them. */
import { expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { command } from '../../src/commands/command.ts'
import { completionScript } from '../../src/commands/completion.ts'
import { execute } from '../../src/commands/execute.ts'

setDefaultTimeout(240_000)

/** Returns what `gateway completion SHELL` prints. */
async function getScript(shell: string): Promise<string> {
  const spy = spyOn(process.stdout, 'write').mockReturnValue(true)
  try {
    expect(await execute(['completion', shell], '1.2.3')).toBe(0)
    return spy.mock.calls.map(([text]) => String(text)).join('')
  } finally {
    spy.mockRestore()
  }
}

/** Prints the completions of one command line, the last word of which is incomplete. */
const inBash = `
complete_line() {
  COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=(); _gateway
  echo "\${COMPREPLY[*]}"
}
complete_line gateway acc
complete_line gateway accounts re
complete_line gateway accounts create --p
complete_line gateway accounts create you@example.com --plan ''
complete_line gateway keys rotate you@example.com gw_live_x --o
complete_line gateway keys create you@example.com --pr
complete_line gateway completion f
complete_line gateway nonsense ''
complete_line gateway migrate --h
`

test('completion bash: completes commands, options and values of the real table', async () => {
  // A shell complains about a locale that the machine lacks.
  const env = { ...process.env, LC_ALL: 'C' }
  const child = Bun.spawn(['bash', '-c', (await getScript('bash')) + inBash], { env, stdout: 'pipe', stderr: 'pipe' })
  expect(await child.stderr.text()).toBe('')
  expect((await child.stdout.text()).split('\n')).toEqual([
    'accounts',
    'resume reset-password reset-two-factor',
    '--plan',
    'evaluation usage',
    '--overlap',
    '--project',
    'fish',
    '',
    '--help',
    '',
  ])
})

const table = [
  command({
    name: 'boxes open',
    about: "Open a box's lid",
    operands: { side: 'left|right' },
    options: {
      file: { type: 'string', value: 'FILE', about: 'where' },
      json: { type: 'boolean', about: 'print JSON' },
    },
    run: async () => {},
  }),
]

test('completionScript: quotes texts, and completes files where a value is free', () => {
  const fish = completionScript('fish', table).split('\n')
  expect(fish).toContain(`complete -c gateway -n '__gateway_at boxes' -a open -d 'Open a box'\\''s lid'`)
  expect(fish).toContain(`complete -c gateway -n '__gateway_at boxes open' -l file -r -F -d 'where'`)
  const zsh = completionScript('zsh', table)
  expect(zsh).toContain(`'boxes open --file') _files; return ;;`)
  expect(zsh).toContain(`'boxes open') described=('left:argument' 'right:argument' '--file:where'`)
})

test('completion: every shell gets every command', async () => {
  for (const shell of ['zsh', 'fish']) expect(await getScript(shell)).toContain('reset-password')
})
