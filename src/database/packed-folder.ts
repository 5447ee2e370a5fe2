/**
 * The packed folder of a new embedded database: initialized and migrated, without accounts. Creating one takes 8 s of
 * processor time and 1 GB, unpacking it 0.3 s. Its name is a digest of everything that determines its content, so that
 * one of other migrations is never used.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'

const migrations = new URL('../../drizzle', import.meta.url).pathname
export const packedName = /^embedded-[0-9a-f]{16}\.tar\.zst$/

/** Returns where the packed folder of this release is; `drizzle/pack.ts` creates it. */
export function packedFolder(): string {
  const hasher = new Bun.CryptoHasher('sha256').update(packageJson.dependencies['@electric-sql/pglite'])
  for (const name of readdirSync(migrations).sort())
    if (name.endsWith('.sql')) hasher.update(readFileSync(join(migrations, name)))
  return join(migrations, `embedded-${hasher.digest('hex').slice(0, 16)}.tar.zst`)
}
