/**
 * Creates data folders quickly: initializing an embedded database takes seconds, copying a template does not. The real
 * code creates the template once per set of migrations; it contains no account.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { migrate, openDatabase } from '../../src/database/database.ts'
import { openEmbedded } from '../../src/database/embedded.ts'
import { keptFolder } from './kept-files.ts'
import { patientStore } from './patience.ts'

const root = resolve(import.meta.dir, '../..')

/** Returns a folder (a new one by default) with a migrated, empty embedded database. */
export async function freshDataFolder(folder = mkdtempSync(join(tmpdir(), 'gateway-ai-'))): Promise<string> {
  const template = await embeddedTemplate()
  copyFolder(join(template, 'postgres'), join(folder, 'postgres'))
  return folder
}

/** Copies a folder to a path that does not exist. `cpSync` takes three times the processor time of the system's `cp`. */
export function copyFolder(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  const { success, stderr } = Bun.spawnSync(['cp', '-r', from, to], { stderr: 'pipe' })
  if (!success) throw new Error(`cp: ${stderr}`)
}

/** Returns the folder that data folders are copied from. The first call on a machine creates it. */
export async function embeddedTemplate(): Promise<string> {
  const template = join(keptFolder(), `gateway-ai-template-${fingerprint()}`)
  if (existsSync(template)) return template
  const making = mkdtempSync(join(keptFolder(), 'gateway-ai-making-'))
  const embedded = await openEmbedded(making)
  const database = openDatabase(embedded.address, patientStore)
  await migrate(database)
  await database.close()
  await embedded.close()
  try {
    renameSync(making, template)
  } catch {
    // Another test process was faster; its template is equivalent.
    rmSync(making, { recursive: true, force: true })
  }
  return template
}

/** Returns a fingerprint of everything that determines the folder's content. */
function fingerprint(): string {
  const hasher = new Bun.CryptoHasher('sha256')
  const migrations = join(root, 'drizzle')
  for (const name of readdirSync(migrations)
    .filter(file => file.endsWith('.sql'))
    .sort())
    hasher.update(readFileSync(join(migrations, name)))
  hasher.update(readFileSync(join(root, 'src/database/embedded-worker.ts')))
  hasher.update(readFileSync(join(root, 'bun.lock')))
  return hasher.digest('hex').slice(0, 16)
}
