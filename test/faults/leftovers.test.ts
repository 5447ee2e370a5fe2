/** A run of the tests that gets a signal in each of its steps leaves no process and no file. */
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../harness/eventually.ts'
import { keptFiles } from '../harness/kept-files.ts'
import { testNeeding } from '../harness/needs.ts'

setDefaultTimeout(240_000)

const root = join(import.meta.dir, '../..')
const folders: string[] = []
const runs = new Set<Bun.Subprocess>()
afterAll(() => {
  for (const run of runs) run.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** Short, since the path of a socket in it may have 107 bytes, and readable, since a Postgres in it is another user. */
function newFolder(): string {
  const place = tmpdir()
  // A run keeps its files in the folder of the run that it belongs to.
  const folder = mkdtempSync(join(place, place.includes('gateway-ai-run-') ? 'r' : 'gateway-ai-run-'))
  chmodSync(folder, 0o755)
  folders.push(folder)
  return folder
}

/** Returns a folder of programs for `PATH` in which servers are missing and an installation never ends. */
function withoutServers(): string {
  const programs = newFolder()
  writeFileSync(join(programs, 'apt-get'), '#!/bin/sh\nexec /bin/sleep 900\n', { mode: 0o755 })
  return programs
}

/** Returns the processes whose files, folder or environment belong to `folder`. */
function processesIn(folder: string): string[] {
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && name !== String(process.pid))
    .map(name => ({ name, command: read(`/proc/${name}/cmdline`), environment: read(`/proc/${name}/environ`) }))
    .filter(({ name, command, environment }) => {
      let place = ''
      try {
        place = readlinkSync(`/proc/${name}/cwd`)
      } catch {}
      return [command, environment, place].some(text => text.includes(folder))
    })
    .map(({ name, command }) => `${name} ${command.replaceAll('\0', ' ')}`)
}

/** Starts a run whose temporary files are below a new folder, and waits for a line of its output. */
async function startRun(until: RegExp, changes: Readonly<Record<string, string | undefined>> = {}) {
  const folder = newFolder()
  const run = Bun.spawn([process.execPath, 'test/run.ts', everyChild], {
    cwd: root,
    env: { ...process.env, TMPDIR: folder, ...changes },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  runs.add(run)
  let output = ''
  const scan = (async () => {
    for await (const piece of run.stdout.pipeThrough(new TextDecoderStream())) output += piece
  })()
  await eventually(async () => until.test(output) || run.exitCode !== null, 120_000)
  return { folder, run, output: () => scan.then(() => output) }
}

const everyChild = 'test/faults/every-child.ts'
const children = [
  /postgres/,
  /redis-server/,
  /main\.(ts|js)/,
  /chromium/,
  /\btsc\b/,
  /bun test|test\/faults\/every-child/,
]

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  const endsAll = async ({ folder, run, output }: Awaited<ReturnType<typeof startRun>>) => {
    run.kill(signal)
    expect(await run.exited).toBe(code)
    expect(processesIn(folder)).toEqual([])
    expect(readdirSync(folder)).toEqual([])
    expect(await output()).toContain(`${signal}: ending all processes of the run`)
  }

  testNeeding(
    ['linux', 'postgres', 'redis', 'chromium'],
    `test/run.ts: ends every process when it gets ${signal} while tests run`,
    async () => {
      const started = await startRun(/creating/)
      const { folder } = started
      await eventually(
        async () =>
          started.run.exitCode !== null ||
          readdirSync(folder).some(name => existsSync(join(folder, name, 'every-child'))),
        120_000,
      )
      if (started.run.exitCode !== null) throw new Error(await started.output())
      const running = processesIn(folder).join('\n')
      for (const child of children) expect(running).toMatch(child)
      await endsAll(started)
    },
  )

  testNeeding(
    ['linux', 'postgres'],
    `test/run.ts: ends every process when it gets ${signal} while it creates databases`,
    async () => endsAll(await startRun(/creating/, { [keptFiles]: undefined })),
  )

  testNeeding('tmpfs', `test/run.ts: ends every process when it gets ${signal} during an installation`, async () =>
    endsAll(await startRun(/installing/, { PATH: withoutServers() })),
  )
}
