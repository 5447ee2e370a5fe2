import { describe, expect, test } from 'bun:test'
import { explainRequest } from '../../../src/console/usage/explain-request.ts'

const failed = {
  status: 'failed',
  errorCode: null,
  layer: null,
  category: null,
  param: null,
  sent: null,
  accepted: null,
  limit: null,
  finishReason: null,
  causes: [],
  isTruncated: false,
} as const
const rejected = { ...failed, status: 'rejected' } as const
const completed = { ...failed, status: 'completed' } as const

const cases = [
  [
    'output moderation',
    { ...completed, finishReason: 'content_filter', layer: 'patterns', category: 'violence' },
    [
      null,
      'The request completed. The moderation layer `patterns` (category `violence`) ended the output.',
      'operator',
    ],
  ],
  [
    'the content filter of the provider',
    { ...completed, finishReason: 'content_filter' },
    [null, 'The request completed. The content filter of the provider ended the output.', 'another provider'],
  ],
  [
    'an output limit',
    { ...completed, finishReason: 'length' },
    [null, 'The request completed. Its output ended at the output limit.', 'max_output_tokens'],
  ],
  [
    'a limit of a tag with a period in its name',
    { ...rejected, errorCode: 'daily_cost_exceeded', limit: 'tag:app=v1.2.daily_cost_usd' },
    [
      'limit',
      'The request can cost more than the remaining daily cost limit. This is a limit of the tag `app=v1.2`.',
      'admin',
    ],
  ],
  [
    'images that no model accepts',
    { ...rejected, errorCode: 'unsupported_parameter', param: 'messages' },
    [
      'routing',
      'No eligible model accepts the images or files of the messages. The error names `messages`.',
      'model with vision',
    ],
  ],
  [
    'an invalid value',
    {
      ...rejected,
      errorCode: 'invalid_request',
      param: 'temperature',
      sent: 'a string',
      accepted: 'a number from 0 to 2',
    },
    [
      'validation',
      'The request is not valid. The error names `temperature`, sent as a string. It accepts a number from 0 to 2.',
      'Correct the field',
    ],
  ],
  [
    'an invalid part of a field',
    { ...rejected, errorCode: 'invalid_request', param: 'messages', sent: 'an array', accepted: 'an array' },
    [
      'validation',
      'The request is not valid. The error names `messages`, sent as an array. It accepts an array. The invalid part can be inside it.',
      'exact place',
    ],
  ],
  [
    'a missing field',
    { ...rejected, errorCode: 'invalid_request', param: 'input', sent: 'nothing' },
    ['validation', 'The request is not valid. The error names `input`, which was not sent.', 'Correct the field'],
  ],
  [
    'a context overflow at the provider',
    { ...failed, errorCode: 'context_length_exceeded', causes: ['context_overflow'] },
    ['provider', 'The conversation exceeds the context window.', 'Shorten'],
  ],
] as const

describe('explainRequest', () => {
  test.each(cases)('explains %s once, with its next step', (_, ended, [decidedBy, summary, next]) => {
    const told = explainRequest(ended)
    expect([told.decidedBy, told.summary]).toEqual([decidedBy, summary])
    expect(told.nextStep).toContain(next)
  })
})
