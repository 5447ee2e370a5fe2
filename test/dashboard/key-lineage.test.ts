import { expect, test } from 'bun:test'
import { otherKeysOf } from '../../src/dashboard/state/key-lineage.ts'

const now = Date.parse('2026-11-23T12:00:00Z')
const [before, after] = ['2026-11-23T11:00:00Z', '2026-11-24T12:00:00Z']
const key = (id: string, revoked_at: string | null = null, expires_at: string | null = null) => ({
  id,
  prefix: `gw_live_${id}…`,
  created_at: before,
  last_used_at: null,
  revoked_at,
  expires_at,
})

test.each([
  ['nothing when the key was never rotated', 'a', [key('a')], []],
  [
    'the key that replaces it',
    'a',
    [key('a', null, after), key('b')],
    ['Key gw_live_b…, which replaces it, keeps working.'],
  ],
  [
    'the end of the old key and of the one that replaces it',
    'b',
    [key('a', null, after), key('b'), key('c', null, after)],
    [
      'The old key gw_live_a… still works until Nov 24, 2026, 12:00:00 UTC.',
      'Key gw_live_c…, which replaces it, keeps working until Nov 24, 2026, 12:00:00 UTC.',
    ],
  ],
  [
    'that no other key works',
    'c',
    [key('a', before), key('b', null, before), key('c')],
    ['No other key of this rotation works.'],
  ],
] as const)('otherKeysOf: names %s', (_, id, lineage, texts) => {
  expect(otherKeysOf({ id, lineage: [...lineage] }, now)).toEqual([...texts])
})
