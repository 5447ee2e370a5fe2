import { describe, expect, test } from 'bun:test'
import { sentKindIn, toRejection } from '../../../src/core/usage/rejection.ts'
import { GatewayError } from '../../../src/core/validation/errors.ts'

const facts = { requestId: 'req_1', accountId: 'acc', keyId: 'key', dialect: 'native', latencyMs: 1 } as const
const getRecord = (body: unknown, error: GatewayError) => toRejection([], { ...facts, body, error }, 0)
const invalid = (param: string) => new GatewayError('invalid_request', 'Not valid.', { param })

describe('toRejection', () => {
  test.each([
    [{ temperature: 'secret words' }, 'temperature', 'a string'],
    [{ temperature: 9 }, 'temperature', 'a number'],
    [{ stream: true }, 'stream', 'a boolean'],
    [{ messages: [{ role: 'secret words' }] }, 'messages.0.role', 'an array'],
    [{ metadata: { secret: 'words' } }, 'metadata.secret', 'an object'],
    [{ model: null }, 'model', 'null'],
    [{}, 'input', 'nothing'],
  ])('keeps the kind of the invalid value, and nothing of it: %j', (body, param, kind) => {
    const record = getRecord(body, invalid(param))
    expect(sentKindIn(record.category)).toBe(kind)
    expect(JSON.stringify(record)).not.toContain('secret')
  })

  test.each([
    ['an undocumented field', { secret: 1 }, invalid('secret')],
    ['a body that was not parsed', undefined, invalid('model')],
    ['another error', { model: 'x' }, new GatewayError('model_not_found', 'No.', { param: 'model' })],
  ])('keeps no kind for %s', (_, body, error) => {
    expect(getRecord(body, error).category).toBeNull()
  })

  test('keeps the limit that was reached', () => {
    const limit = 'key.requests_per_minute'
    const record = getRecord({}, new GatewayError('requests_per_minute_exceeded', 'Wait.', { limit, param: 'model' }))
    expect([record.category, sentKindIn(record.category)]).toEqual([limit, null])
  })
})
