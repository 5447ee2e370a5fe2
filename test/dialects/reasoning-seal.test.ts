import { expect, test } from 'bun:test'
import type { ReasoningItem } from '../../src/core/chat/chat.ts'
import { createReasoningSeal, isSealed } from '../../src/dialects/reasoning-seal.ts'

const item: ReasoningItem = {
  family: 'anthropic',
  kind: 'signature',
  text: 'Überlegung 思考',
  data: 'EqQB+/=',
  id: null,
}
const seal = createReasoningSeal('first secret', null)

test('reasoning seal: opens a sealed item for its account', () => {
  const text = seal.seal('acc_1', item)
  expect(isSealed(text)).toBe(true)
  expect(seal.open('acc_1', text)).toEqual(item)
})

test('reasoning seal: returns null for another account', () => {
  expect(seal.open('acc_2', seal.seal('acc_1', item))).toBeNull()
})

test('reasoning seal: encrypts text and data', () => {
  const bytes = Buffer.from(seal.seal('acc_1', item).slice(5), 'base64url')
  expect(bytes.includes('EqQB')).toBe(false)
  expect(bytes.includes('berlegung')).toBe(false)
})

test('reasoning seal: returns a different text each time for one item', () => {
  expect(seal.seal('acc_1', item)).not.toBe(seal.seal('acc_1', item))
})

test('reasoning seal: rejects a change of any byte, a truncation and other texts', () => {
  const text = seal.seal('acc_1', item)
  const bytes = Buffer.from(text.slice(5), 'base64url')
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(seal.open('acc_1', `gwr1.${changed.toString('base64url')}`)).toBeNull()
    expect(seal.open('acc_1', `gwr1.${bytes.subarray(0, at).toString('base64url')}`)).toBeNull()
  }
  for (const other of ['', 'gwr1.', 'gwr1.!!!', 'EqQBCkYIARgC', 'gwr2.AAAA'])
    expect(seal.open('acc_1', other)).toBeNull()
})

test('reasoning seal: opens items of the previous secret and seals under the new one', () => {
  const before = seal.seal('acc_1', item)
  const after = createReasoningSeal('second secret', 'first secret')
  expect(after.open('acc_1', before)).toEqual(item)
  expect(seal.open('acc_1', after.seal('acc_1', item))).toBeNull()
})
