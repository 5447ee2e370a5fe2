/** Creates the packed folder of a new embedded database, after a change of the migrations or of PGlite. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { packedFolder, packedName } from '../src/database/data-folder.ts'
import { migrate, openDatabase } from '../src/database/database.ts'
import { openEmbedded } from '../src/database/embedded.ts'

const path = packedFolder()
for (const name of readdirSync(dirname(path))) if (packedName.test(name)) rmSync(join(dirname(path), name))
const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-pack-'))
const embedded = await openEmbedded(folder)
const database = openDatabase(embedded.address, { connections: 1 })
await migrate(database)
// The gateway creates no further database, so their templates would be two thirds of the folder.
await database.run(({ sql }) => sql`update pg_database set datistemplate = false`)
for (const name of ['template0', 'template1']) await database.run(({ sql }) => sql`drop database ${sql(name)}`)
await database.close()
await embedded.close()
const fixed = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mtime=@0']
const { stdout, success, stderr } = Bun.spawnSync(['tar', ...fixed, '-C', join(folder, 'postgres'), '-c', '.'])
if (!success) throw new Error(`tar: ${stderr}`)
writeFileSync(path, Bun.zstdCompressSync(stdout, { level: 22 }))
rmSync(folder, { recursive: true })
process.stdout.write(`${path}: ${Bun.file(path).size} bytes\n`)
