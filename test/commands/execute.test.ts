/** Help texts, and output that is closed early. */
import { afterEach, beforeEach, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { execute } from '../../src/commands/execute.ts'
import { showProgress } from '../../src/commands/progress.ts'
import { shellCommand } from '../../src/core/validation/errors.ts'
import { programPath } from '../harness/bundle.ts'

setDefaultTimeout(240_000)

let said = { out: '', error: '' }
const spies: { mockRestore(): void }[] = []
beforeEach(() => {
  said = { out: '', error: '' }
  spies.push(
    spyOn(process.stdout, 'write').mockImplementation(text => {
      said.out += String(text)
      return true
    }),
    spyOn(process.stderr, 'write').mockImplementation(text => {
      said.error += String(text)
      return true
    }),
  )
})
afterEach(() => {
  for (const spy of spies.splice(0)) spy.mockRestore()
})

test.each([
  ['', 'Missing command.', 'accounts create'],
  ['accounts', 'Missing command.', 'accounts create'],
  ['accounts frobnicate', 'Unknown command "accounts frobnicate".', 'accounts create'],
  ['frobnicate', 'Unknown command "frobnicate".', 'serve'],
  ['frobnicate --help', 'Unknown command "frobnicate".', 'serve'],
  ['keys list', 'Missing argument <email>.', shellCommand('keys list <email>')],
  ['accounts plan a@b gold', 'The plan must be evaluation or usage.', shellCommand('accounts plan')],
  ['accounts limits a@b --rpm -5', "Option '--rpm' argument is ambiguous.", '--rpm N'],
  ['usage reconcile --from yesterday', '--from must be a UTC day: YYYY-MM-DD.', '--from YYYY-MM-DD'],
  ['migrate now', 'Unexpected argument "now".', shellCommand('migrate')],
])('execute: reports wrong arguments once with help and exit code 2 for `%s`', async (words, complaint, advice) => {
  expect(await execute(words.split(' ').filter(Boolean), '1.2.3')).toBe(2)
  expect(said.out).toBe('')
  expect(said.error).toStartWith(`${complaint}\n\n`)
  expect(said.error).toContain(advice)
})

test.each([
  ['frobnicate --json', 'Unknown command "frobnicate".'],
  ['accounts show --json', 'Missing argument <email>.'],
  ['keys create a@b --json --models gpt', '--models must be a list'],
  ['keys create a@b --json --limits requests_per_minute', '--limits must be NAME=NUMBER'],
  ['keys create a@b --json --limits rpm=5', '--limits must be NAME=NUMBER'],
  ['keys create a@b --json --expires soon', '--expires must be a duration'],
  ['keys create a@b --json --expires 2001-01-01', '--expires must be a duration'],
  ['keys rotate a@b gw_live_x --overlap 8d --json', '--overlap must be a duration'],
])('execute: reports an error as one JSON line for `%s`', async (words, complaint) => {
  expect(await execute(words.split(' '), '1.2.3')).toBe(2)
  expect(said.out).toBe('')
  const { error } = JSON.parse(said.error)
  expect(error).toMatchObject({ code: 'wrong_arguments', message: expect.stringContaining(complaint) })
})

test('execute: reports a wrong configuration as JSON with every problem', async () => {
  const own = process.env
  process.env = { PATH: own.PATH, PORT: 'x', WORKERS: 'y' }
  try {
    expect(await execute(['models', 'list', '--json'], '1.2.3')).toBe(1)
  } finally {
    process.env = own
  }
  const { error } = JSON.parse(said.error)
  expect(error.code).toBe('wrong_configuration')
  expect(error.problems.map((line: string) => line.split(':')[0]).sort()).toEqual(['PORT', 'WORKERS'])
})

test('models list: shows the models of the configured providers with their prices', async () => {
  const own = process.env
  process.env = { PATH: own.PATH, MISTRAL_API_KEY: 'canary-key', XAI_API_KEY: 'canary-key' }
  try {
    expect(await execute(['models', 'list', '--prices'], '1.2.3')).toBe(0)
    expect(said.out).toMatch(/^mistral\/codestral-latest +256000 +\d+ +- +0\.3 +- +- +0\.9$/m)
    expect(said.out).toMatch(/^xai\/grok-4\.7 .* 2\* +0\.5\* +- +6\*$/m)
    expect(said.out).not.toContain('openai/')
    said = { out: '', error: '' }
    await execute(['models', 'list', '--provider', 'xai', '--prices', '--json'], '1.2.3')
    expect(JSON.parse(said.out).data[0]).toMatchObject({ id: 'xai/grok-4.7', pricing: { input_per_mtok: 2 } })
  } finally {
    process.env = own
  }
})

test.each([
  ['--version', '1.2.3\n'],
  ['help', shellCommand('<command>')],
  ['-h', shellCommand('<command>')],
  ['accounts --help', '  accounts show'],
  ['accounts create --help', shellCommand('accounts create <email> [options]')],
])('execute: prints help on stdout with exit code 0 for `%s`', async (words, answer) => {
  expect([await execute(words.split(' '), '1.2.3'), said.error]).toEqual([0, ''])
  expect(said.out).toContain(answer)
})

test('execute: finds every command of the overview by its name', async () => {
  await execute(['help'], '1.2.3')
  const names = [...said.out.matchAll(/^ {2}(\S+(?: \S+)?) {2,}/gm)].map(([, name = '']) => name)
  expect(names).toEqual(expect.arrayContaining(['serve', 'accounts create', 'models check', 'analyze']))
  for (const name of names) {
    said = { out: '', error: '' }
    expect([name, await execute([...name.split(' '), '--help'], '1.2.3')]).toEqual([name, 0])
    expect(said.out).toStartWith(shellCommand(name))
  }
})

test('execute: ends without an error when the output is closed', async () => {
  const script = programPath('cli.ts')
  for (const words of [['models', 'check', '--json'], ['analyze']]) {
    const child = Bun.spawn([process.execPath, script, ...words], { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' })
    await child.stdout.cancel()
    child.stdin.write('{"text":"Why is the sky blue?"}\n'.repeat(2_000))
    child.stdin.end()
    expect([words, await child.stderr.text(), await child.exited]).toEqual([words, '', 0])
  }
})

test('showProgress: draws on a terminal only and removes the line at the end', () => {
  const drawn: string[] = []
  const write = (text: string) => drawn.push(text)
  let done = 0
  const progress = showProgress('shipping', () => ({ done, of: 4 }), { isTTY: true, write })
  done = 3
  progress.clear()
  progress.draw()
  progress.stop()
  expect(drawn).toEqual([
    `\rshipping [${'.'.repeat(24)}] 0 of 4\u001b[K`,
    '\r\u001b[K',
    `\rshipping [${'#'.repeat(18)}${'.'.repeat(6)}] 3 of 4\u001b[K`,
    '\r\u001b[K',
  ])
  showProgress('shipping', () => ({ done: 1, of: null }), { isTTY: false, write }).stop()
  expect(drawn.length).toBe(4)
})
