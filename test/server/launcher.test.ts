import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { resolve } from 'node:path'
import { testNeeding } from '../harness/needs.ts'

setDefaultTimeout(240_000)

const script = `
import { watchLauncher } from ${JSON.stringify(resolve(import.meta.dir, '../../src/server/launcher.ts'))}
watchLauncher(() => { console.log('gone'); process.exit() })
console.log('watching ' + process.ppid)
setTimeout(() => { console.log('alone'); process.exit() }, Number(process.env.UNTIL_MS))
`

const running = new Set<Bun.Subprocess>()
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
})

/** A process with npx's title, a shell below it, and below that the process that watches. */
async function launched(title: string, untilMs: number) {
  const inner = `"${process.execPath}" -e "$SCRIPT"; true`
  const child = Bun.spawn(['bash', '-c', `exec -a '${title}' bash -c 'sh -c "$INNER"; true'`], {
    env: { ...process.env, SCRIPT: script, INNER: inner, UNTIL_MS: String(untilMs) },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  running.add(child)
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  const next = async () => (await lines.read()).value?.trim() ?? ''
  const [, shell = ''] = /^watching (\d+)$/.exec(await next()) ?? []
  return { npx: child, shell: Number(shell), next }
}

testNeeding(['linux', 'bash'], 'the end of npx, and that of the shell below it, is noticed', async () => {
  const killed = await launched('npm exec bun@1 run start', 15_000)
  killed.npx.kill('SIGKILL')
  expect(await killed.next()).toBe('gone')
  const cut = await launched('npm exec bun@1 run start', 15_000)
  process.kill(cut.shell, 'SIGTERM')
  expect(await cut.next()).toBe('gone')
})

testNeeding(['linux', 'bash'], 'whoever is started another way outlives who started it', async () => {
  const detached = await launched('service manager', 1_500)
  detached.npx.kill('SIGKILL')
  expect(await detached.next()).toBe('alone')
})
