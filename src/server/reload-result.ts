/**
 * The result of the last reload of one gateway process, in its own folder: a signal has no answer, so the command that
 * sent it reads the file.
 */
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

const resultSchema = Type.Object({
  /** Epoch milliseconds. */
  at: Type.Number(),
  pid: Type.Integer(),
  problems: Type.Array(Type.String()),
  restart: Type.Array(Type.String()),
})
export type StoredReload = Static<typeof resultSchema>

const fileName = 'reload.json'

/** Invalid settings, and changes that need a restart. */
export type StoredProblems = { readonly problems: readonly string[]; readonly restart: readonly string[] }

/** Writes the result. A full disk must not stop the gateway: the log has the result too. */
export function storeReload(directory: string, result: StoredProblems): void {
  const path = join(directory, fileName)
  try {
    writeFileSync(`${path}.unfinished`, JSON.stringify({ ...result, at: Date.now(), pid: process.pid }), {
      mode: 0o600,
    })
    renameSync(`${path}.unfinished`, path)
  } catch {}
}

/** Returns the results of all processes of a data folder. */
export function readReloads(dataDirectory: string): StoredReload[] {
  const folders = readdirSync(dataDirectory).filter(name => /^worker-\d+$/.test(name))
  return [dataDirectory, ...folders.map(name => join(dataDirectory, name))].flatMap(folder => {
    try {
      const value: unknown = JSON.parse(readFileSync(join(folder, fileName), 'utf8'))
      return Value.Check(resultSchema, value) ? [value] : []
    } catch {
      return []
    }
  })
}
