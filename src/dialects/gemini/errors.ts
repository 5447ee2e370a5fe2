/** Writes errors in Google's format. Clients evaluate the status, its name, and the details about quotas and waits. */
import { Type } from '@sinclair/typebox'
import { googleStatuses } from '../../core/chat/google-wire.ts'
import { errorBody, errorTable, type GatewayError, wireCode } from '../../core/validation/errors.ts'
import { strictObject } from '../../core/validation/validate.ts'
import { errorResponse } from '../../http/error-response.ts'
import { namedSchema, text } from '../../http/schemas.ts'

/** Names of the statuses that Google's API does not have. */
const otherNames: Readonly<Record<number, string>> = { 402: 'FAILED_PRECONDITION', 421: 'PERMISSION_DENIED' }

/** Returns the name of a status. A client must not retry an unknown 4xx. */
function statusName(status: number): string {
  const [name] = [...googleStatuses].find(([, code]) => code === status) ?? []
  return name ?? otherNames[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL')
}

const rpc = (type: string) => `type.googleapis.com/google.rpc.${type}`

/** Gemini's words for an input that is too long, which clients recognize. */
const overflowWords = 'exceeds the maximum number of tokens allowed'

/** Returns the error object. Its `reason` is the gateway's code in upper case, and Google's own for a wrong key. */
export function googleErrorBody(error: GatewayError, requestId: string): object {
  const { code, message, param, status, limit, retryAfterMs } = error
  const reason = code === 'invalid_api_key' ? 'API_KEY_INVALID' : wireCode(code).toUpperCase()
  const { type: _type, code: _code, message: _message, param: _param, ...facts } = errorBody(error, requestId).error
  const texts = Object.entries({ ...facts, ...error.details }).filter(([, value]) => typeof value === 'string')
  const isDaily = error.type === 'insufficient_quota'
  const isOverflow = code === 'context_length_exceeded'
  return {
    error: {
      code: status,
      message: isOverflow ? `The input token count ${overflowWords}. ${message}` : message,
      status: statusName(status),
      details: [
        { '@type': rpc('ErrorInfo'), reason, domain: 'gateway-ai', metadata: Object.fromEntries(texts) },
        ...(param === null
          ? []
          : [{ '@type': rpc('BadRequest'), fieldViolations: [{ field: param, description: message }] }]),
        // Clients wait for a quota per minute, and stop at one per day.
        ...(isDaily
          ? [{ '@type': rpc('QuotaFailure'), violations: [{ subject: limit ?? 'account', quotaId: 'GatewayPerDay' }] }]
          : []),
        ...(retryAfterMs === null || isDaily
          ? []
          : [{ '@type': rpc('RetryInfo'), retryDelay: `${Math.max(1, Math.ceil(retryAfterMs / 1000))}s` }]),
      ],
    },
  }
}

/** Returns the error response. */
export function geminiRefusal(error: GatewayError, requestId: string): Response {
  const { headers, status } = errorResponse(error, requestId)
  return new Response(JSON.stringify(googleErrorBody(error, requestId)), { status, headers })
}

/** An error of this API. */
const geminiErrorShape = namedSchema('GeminiError', {
  error: strictObject({
    code: Type.Integer({ description: 'the HTTP status', examples: [400] }),
    message: text('`contents` is missing: it must be an array of at least 1 item.', 'what to do next'),
    status: text('INVALID_ARGUMENT'),
    details: Type.Array(Type.Object({ '@type': text(rpc('ErrorInfo')) }, { additionalProperties: true }), {
      description: '`ErrorInfo` with the code in upper case, `BadRequest`, `QuotaFailure`, `RetryInfo`',
    }),
  }),
})

export const refusals = {
  shape: geminiErrorShape,
  getStatus: (code: keyof typeof errorTable) => errorTable[code].status,
}
