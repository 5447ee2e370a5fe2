import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lockDataFolder } from '../../src/database/data-folder.ts'
import { migrate, openDatabase } from '../../src/database/database.ts'
import { toStoreError } from '../../src/database/open-stores.ts'
import { patient, patientStore } from '../harness/patience.ts'

const canary = 'canary'
const config = {
  dataDirectory: '/data',
  databaseUrl: `postgres://gateway:${canary}@db.example:6432/gateway`,
  serviceDeadlines: patient,
}

function failure(fields: object, message = `something with ${canary}`): Error {
  return Object.assign(new Error(message), fields)
}

describe('toStoreError', () => {
  test.each<[string, Error, string]>([
    [
      'a folder without rights',
      failure({ code: 'EACCES', syscall: 'mkdir', path: '/data' }),
      'GATEWAY_DATA_DIR: /data cannot be used: this user lacks permission. Set it to a folder that this user may write.',
    ],
    [
      'a full disk',
      failure({ code: 'ENOSPC', syscall: 'write', path: '/data/journal/1' }),
      'GATEWAY_DATA_DIR: /data/journal/1 cannot be used: its disk is full. Set it to a folder that this user may write.',
    ],
    [
      'an embedded database that breaks',
      new Error('The embedded database failed: no magic number.'),
      'GATEWAY_DATA_DIR: The embedded database failed: no magic number. Check that /data is whole and may be written, or set it to another folder.',
    ],
    [
      'nobody there',
      failure({ code: 'ECONNREFUSED', syscall: 'connect', address: '10.0.0.1' }),
      'DATABASE_URL: Postgres does not answer at db.example:6432 (ECONNREFUSED). Start it there, or correct the address.',
    ],
    [
      'a socket that is not there',
      failure({ code: 'ENOENT', syscall: 'connect', path: '/run/postgresql/.s.PGSQL.5432' }),
      'DATABASE_URL: Postgres does not answer at db.example:6432 (ENOENT). Start it there, or correct the address.',
    ],
    [
      'an unknown host',
      failure({ code: 'ENOTFOUND', syscall: 'getaddrinfo' }),
      'DATABASE_URL: no host is known as db.example. Correct the address.',
    ],
    [
      'a wrong password',
      new Error(`Failed query with ${canary}`, {
        cause: failure({ name: 'PostgresError', code: '28P01' }, 'password authentication failed for user "gateway"'),
      }),
      'DATABASE_URL: Postgres at db.example:6432 says: password authentication failed for user "gateway". Correct the user or the password.',
    ],
  ])('names the variable to change, without the password: %s', (_, cause, text) => {
    expect(toStoreError(config, cause)).toBe(text)
  })

  test.each([
    ['the system', 'ENOSPC'],
    ['the embedded database', '53100'],
  ])('names the full disk of the data folder that %s reports', (_, code) => {
    const text = toStoreError({ ...config, databaseUrl: null }, failure({ code }))
    expect(text).toStartWith('GATEWAY_DATA_DIR: the disk that holds /data is full. Free space on it')
    expect(text).not.toContain(canary)
  })

  test('recognizes errors of the system and of the driver', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-problems-'))
    try {
      const file = join(folder, 'file')
      writeFileSync(file, '')
      expect(
        toStoreError(
          config,
          thrownBy(() => lockDataFolder(join(file, 'data'))),
        ),
      ).toMatch(/^GATEWAY_DATA_DIR: .*a part of the path is not a folder/)
      expect(
        toStoreError(
          config,
          thrownBy(() => lockDataFolder(file)),
        ),
      ).toMatch(/^GATEWAY_DATA_DIR: .*it exists and is not a folder/)
    } finally {
      rmSync(folder, { recursive: true })
    }
    const databaseUrl = `postgres://gateway:${canary}@127.0.0.1:1/x`
    const refused = await migrate(openDatabase(databaseUrl, patientStore)).catch((cause: unknown) => cause)
    expect(toStoreError({ ...config, databaseUrl }, refused)).toStartWith(
      'DATABASE_URL: Postgres does not answer at 127.0.0.1:1 (ECONNREFUSED).',
    )
  })
})

function thrownBy(act: () => unknown): unknown {
  try {
    act()
  } catch (cause) {
    return cause
  }
  throw new Error('nothing was thrown')
}
