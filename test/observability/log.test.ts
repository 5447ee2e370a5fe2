import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createLog, loggedFields } from '../../src/observability/log.ts'

const source = resolve(import.meta.dir, '../../src')

function logged(pretty: boolean, fields: Record<string, string | number | boolean | null>): string {
  const lines: string[] = []
  const log = createLog({ level: 'info', pretty, now: () => 0, write: line => void lines.push(line) })
  log.info('event', fields)
  log.debug('unheard', fields)
  expect(lines).toHaveLength(1)
  return lines[0] ?? ''
}

test('log: writes one JSON object with time, level and event', () => {
  expect(JSON.parse(logged(false, { request_id: 'req_1', status: 200 }))).toEqual({
    at: '1970-01-01T00:00:00.000Z',
    level: 'info',
    event: 'event',
    request_id: 'req_1',
    status: 200,
  })
})

test('log: names a field that is not on the list without its value [L2]', () => {
  for (const pretty of [true, false]) {
    const line = logged(pretty, { prompt: 'canary', code: 'fine' })
    expect(line).not.toContain('canary')
    expect(line).toContain('prompt')
    expect(line).toContain('fine')
  }
})

const secrets = {
  'an API key': 'gw_live_abcdefghijkl_0123456789012345678901234567890123456789012abcdef',
  'a refresh token': 'gw_refresh_0123456789_abcdefghijklmnopqrstuvwxyz-0123456',
  'a password reset’s token': 'gw_reset_0123456789_abcdefghijklmnopqrstuvwxyz-0123456',
  'an invitation’s token': 'gw_invite_0123456789_abcdefghijklmnopqrstuvwxyz-0123456',
  'a session token': 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c3JfMSJ9.c2lnbmF0dXJlLXNpZ25hdHVyZQ',
  'a provider’s key': 'sk-proj-0123456789abcdef0123456789',
  'Google’s key': 'AIzaSyA0123456789abcdefghijklmnopqrstu',
  'a webhook secret': 'whsec_0123456789abcdef01234567',
  'a bearer header': 'Bearer 0123456789abcdef',
  'a database’s password': 'postgres://gateway:0123456789@database.internal/gateway',
}
for (const [name, secret] of Object.entries(secrets))
  test(`log: removes ${name} from a detail [L2]`, () => {
    const line = logged(false, { detail: `before ${secret} after` })
    expect(line).not.toContain('0123456789')
    expect(line).not.toContain('c2lnbmF0dXJl')
    expect(line).toMatch(/before .* after/)
  })

test('log: lists every field that the source uses [L2]', () => {
  const missing: string[] = []
  for (const name of readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(text => text.endsWith('.ts'))) {
    const text = readFileSync(join(source, name), 'utf8')
    if (!/\blog\.(debug|info|warn|error)\(/.test(text)) continue
    const handed = /(?:\blog\.(?:debug|info|warn|error)\(\s*(?:event|'\w+'),\s*|\bconst fields = )\{([^}]*)\}/g
    for (const [, fields = ''] of text.matchAll(handed))
      for (const [, field = ''] of fields.matchAll(/(?:^|[,{])\s*(\w+)\s*(?=[:,}]|$)/g))
        if (!loggedFields.has(field))
          missing.push(`${name}: ${field}: name it in observability/log.ts, if it holds no content`)
  }
  expect(missing).toEqual([])
})
