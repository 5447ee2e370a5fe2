import { expect, test } from 'bun:test'
import { GatewayError, renamed } from '../../src/core/errors.ts'

test('an error about a renamed field says all else that it said', () => {
  const error = new GatewayError('unsupported_parameter', 'Leave `tools` out; `tool_choice` goes with it.', {
    param: 'tools',
    detail: 'd',
    retryAfterMs: 7,
    shouldRetry: false,
    layer: 'l',
    category: 'c',
    completed: { requestId: 'r', resultId: null, usage: null },
  })
  expect({ ...renamed(error, 'functions') }).toEqual({ ...error, param: 'functions' })
  expect(renamed(error, 'functions').message).toBe('Leave `functions` out; `tool_choice` goes with it.')
})
