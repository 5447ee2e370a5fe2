import { expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { unknownNames } from '../../../src/core/validation/unknown-names.ts'
import { nullable } from '../../../src/core/validation/validate.ts'

const open = { additionalProperties: true }
const part = Type.Object({ text: nullable(Type.String()), args: nullable(Type.Object({}, open)) }, open)
const schema = Type.Object(
  { parts: Type.Union([Type.Array(part), part]), config: nullable(Type.Object({ a: nullable(Type.Number()) }, open)) },
  open,
)

test('unknownNames: returns fields at every depth once, without positions', () => {
  const parts = [{ text: 'a', zork: 1 }, { zork: 2, args: { own: 1 } }, { blip: { deep: 1 } }]
  expect([...unknownNames(schema, { parts, config: { a: 1, b: [] }, other: 0 })]).toEqual([
    'parts.zork',
    'parts.blip',
    'config.b',
    'other',
  ])
  expect([...unknownNames(schema, { parts: { zork: 1 } })]).toEqual(['parts.zork'])
})

test('unknownNames: skips null, and takes no inherited name for a known one', () => {
  expect([...unknownNames(schema, { parts: [], other: null })]).toEqual([])
  expect([...unknownNames(schema, { parts: [], constructor: 1 })]).toEqual(['constructor'])
})
