import { describe, expect, test } from 'bun:test'
import { type ErrorCode, errorTable, GatewayError, withParam } from '../../../src/core/validation/errors.ts'

test('withParam: keeps everything else of the error', () => {
  const error = new GatewayError('unsupported_parameter', 'Leave `tools` out; `tool_choice` goes with it.', {
    param: 'tools',
    detail: 'd',
    retryAfterMs: 7,
    shouldRetry: false,
    layer: 'l',
    category: 'c',
    completed: { requestId: 'r', resultId: null, usage: null },
  })
  expect({ ...withParam(error, 'functions') }).toEqual({ ...error, param: 'functions' })
  expect(withParam(error, 'functions').message).toBe('Leave `functions` out; `tool_choice` goes with it.')
})

describe('GatewayError', () => {
  const codes = Object.keys(errorTable).filter(isCode)

  test('message says "Rate limit" when the status is 429', () => {
    const limits = codes.filter(code => errorTable[code].status === 429)
    expect(limits.length).toBeGreaterThan(3)
    // LiteLLM, `is_error_str_rate_limit`: in any case, with a space, an underscore or a hyphen.
    for (const code of limits)
      expect(new GatewayError(code, 'Daily token limit reached.').message).toContain('Rate limit')
    expect(new GatewayError('ip_rate_limited', 'Rate limit reached: wait.').message.match(/rate limit/gi)).toHaveLength(
      1,
    )
  })

  test('message names who can change the limit, once, when the status is 402 or 429', () => {
    const rejections = codes.filter(code => [402, 429].includes(errorTable[code].status))
    expect(rejections.length).toBeGreaterThan(8)
    const who = /The operator of this gateway can .*`[^`]*accounts |The operator .* at the provider|An owner|is fixed/g
    for (const code of rejections) {
      const error = new GatewayError(code, 'Limit reached.')
      expect({ code, names: error.message.match(who) }).toEqual({ code, names: [expect.any(String)] })
      expect(withParam(error, 'other').message).toBe(error.message)
      const special = new GatewayError(code, 'Limit reached.', { remedy: 'The landlord can change it.' })
      expect(special.message).toContain('The landlord can change it.')
      expect(special.message).not.toMatch(who)
      expect(withParam(special, 'other').message).toBe(special.message)
    }
  })

  test('message never says "Rate limit" when the status is another one', () => {
    for (const code of codes)
      if (errorTable[code].status !== 429)
        expect(new GatewayError(code, 'No.').message).not.toMatch(/rate[\s_-]*limit/i)
  })

  test('message names the maximum context length when the conversation exceeds it', () => {
    for (const message of ['Too long.', "Too long. This model's maximum context length is 8192 tokens."]) {
      const told = new GatewayError('context_length_exceeded', message).message
      // LiteLLM: `is_error_str_context_window_exceeded`; LangChain: `_isOpenAIContextOverflowError`.
      expect(told.toLowerCase()).toContain("this model's maximum context length is")
      expect(told.match(/maximum context length/g)).toHaveLength(1)
    }
  })

  test('message names the content policy when moderation blocks the request', () => {
    const told = new GatewayError('content_blocked', 'Blocked.').message
    // LiteLLM: `_map_openai_exception` and `is_azure_content_policy_violation_error`.
    expect(told).toContain('content_policy_violation')
    expect(told.toLowerCase()).toContain('request was rejected as a result of the safety system')
  })

  test('message contains no double quote in the recognized words', () => {
    // Python prints text with both kinds of quotes with an escaped apostrophe, which no library matches.
    for (const code of codes) expect(new GatewayError(code, 'No.').message).not.toContain('"')
  })
})

function isCode(code: string): code is ErrorCode {
  return code in errorTable
}
