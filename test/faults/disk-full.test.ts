/** A start on a full disk: a small tmpfs, which requires root to mount. */
import { afterAll, describe, expect, setDefaultTimeout } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDataFolder } from '../harness/data-folder.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { startPostgres } from '../harness/postgres.ts'
import { run, stopProcesses } from '../harness/processes.ts'

setDefaultTimeout(240_000)

const mounted: string[] = []
const postgres = await startPostgres()

afterAll(async () => {
  await stopProcesses()
  await postgres?.stop()
  for (const place of mounted) {
    Bun.spawnSync(['umount', place])
    rmSync(place, { recursive: true, force: true })
  }
})

/** Mounts a disk of this many megabytes. */
function smallDisk(megabytes: number): string {
  const place = mkdtempSync(join(tmpdir(), 'gateway-disk-'))
  if (Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', place]).exitCode === 0) {
    mounted.push(place)
    return place
  }
  rmSync(place, { recursive: true, force: true })
  throw new Error('A tmpfs could not be mounted.')
}

/** Fills a disk up to this many free bytes. */
function fill(disk: string, left: number): void {
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(join(disk, 'filling'), Buffer.alloc(Math.max(0, bavail * bsize - left)))
}

async function expectSaid(folder: string, environment: Readonly<Record<string, string>> = {}) {
  const { code, stdout, stderr } = await run('main.ts', [], { PORT: '0', GATEWAY_DATA_DIR: folder, ...environment })
  expect({ code, said: stdout.split('\n').filter(line => line !== '' && !line.startsWith('{')) }).toEqual({
    code: 1,
    said: [],
  })
  expect(stderr).toBe(
    `gateway-ai cannot start: GATEWAY_DATA_DIR: the disk that holds ${folder} is full. Free space on it, or set it to a folder on another disk.\n`,
  )
}

describe('a full disk', () => {
  testNeeding('tmpfs', 'start: names the full disk when a first start has 1 MB', async () => {
    await expectSaid(join(smallDisk(1), 'data'))
  })

  testNeeding('tmpfs', 'start: names the full disk when a database is there and has no room to write', async () => {
    for (const left of [0, 16 << 10]) {
      const disk = smallDisk(96)
      const folder = join(disk, 'data')
      mkdirSync(folder)
      await freshDataFolder(folder)
      fill(disk, left)
      await expectSaid(folder)
    }
  })

  testNeeding(
    ['tmpfs', 'postgres'],
    'start: names the full disk when Postgres is elsewhere and only the journal has no room',
    async () => {
      const disk = smallDisk(1)
      fill(disk, 0)
      await expectSaid(join(disk, 'data'), {
        DATABASE_URL: needed(postgres).url,
        JWT_SECRET: 'a secret of the tests, long enough',
      })
    },
  )
})
