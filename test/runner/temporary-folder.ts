/** The folder that holds everything a test run writes, and ends with it. */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dayMs } from '../../src/core/text/utc-days.ts'

/** Memory as a folder, and the free bytes from which it holds a run: more than ten times its files. */
const memoryFolder = '/dev/shm'
const enoughFreeBytes = 2 ** 32
const prefix = 'gateway-ai-run-'

/**
 * Returns a new folder, in memory if there is room: creating and dropping a database takes a disk ten times the CPU
 * time. A run within a run has its folder within the other one's.
 */
export function makeTemporaryFolder(): string {
  const place = tmpdir().includes(prefix) || !isMemoryUsable() ? tmpdir() : memoryFolder
  // A run that was killed left its folder.
  for (const name of readdirSync(place).filter(text => text.startsWith(prefix)))
    if (Date.now() - statSync(join(place, name)).mtimeMs > dayMs) removeTemporaryFolder(join(place, name))
  const folder = mkdtempSync(join(place, prefix))
  // A Postgres in it runs as another user.
  chmodSync(folder, 0o755)
  return folder
}

/** Removes the folder and the file systems that tests have mounted in it. */
export function removeTemporaryFolder(folder: string): void {
  for (const place of mounts().map(([, path = '']) => path))
    if (place.startsWith(`${folder}/`)) Bun.spawnSync(['umount', place])
  rmSync(folder, { recursive: true, force: true })
}

function isMemoryUsable(): boolean {
  const options = mounts().find(([, path]) => path === memoryFolder)?.[3]
  // Some tests run programs from their folder.
  if (options === undefined || options.split(',').includes('noexec')) return false
  const { bavail, bsize } = statfsSync(memoryFolder)
  return bavail * bsize >= enoughFreeBytes
}

/** Returns device, path, type and options of each file system; nothing where the system does not list them. */
function mounts(): readonly string[][] {
  try {
    return readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map(line => line.split(' '))
  } catch {
    return []
  }
}
