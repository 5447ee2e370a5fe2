/** Checks of OpenAI Chat Completions: which requests the API rejects, and with which message. */
import { type Failure, isWireObject, mistake, objectsIn, unknownField, type WireObject } from './wire-format.ts'

const knownFields = new Set(
  `model messages stream stream_options max_completion_tokens max_tokens temperature top_p n stop presence_penalty
  frequency_penalty logit_bias logprobs top_logprobs seed response_format tools tool_choice parallel_tool_calls functions
  function_call reasoning_effort verbosity modalities audio prediction web_search_options service_tier store metadata user
  safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options moderation`.split(/\s+/),
)

/** Lowest and highest value of each numeric field. */
const ranges: Readonly<Record<string, readonly [number, number]>> = {
  temperature: [0, 2],
  top_p: [0, 1],
  n: [1, 128],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
  top_logprobs: [0, 20],
  max_tokens: [1, Number.MAX_SAFE_INTEGER],
  max_completion_tokens: [1, Number.MAX_SAFE_INTEGER],
}

/** Parameters that models reject; `unlessEffortNone` if they are allowed with reasoning turned off. */
const parameterRules: readonly { models: RegExp; fields: readonly string[]; unlessEffortNone: boolean }[] = [
  { models: /^(o\d|gpt-[5-9])/, fields: ['max_tokens'], unlessEffortNone: false },
  {
    models: /^(o\d|gpt-[5-9])/,
    fields: ['presence_penalty', 'frequency_penalty', 'logit_bias', 'top_logprobs'],
    unlessEffortNone: false,
  },
  {
    models: /^(o\d|gpt-5(-|$)|gpt-6-astra|gpt-6\.1-sol)/,
    fields: ['temperature', 'top_p', 'logprobs'],
    unlessEffortNone: false,
  },
  {
    models: /^(gpt-5\.|gpt-6-sol|gpt-6-luna|gpt-6\.1-terra)/,
    fields: ['temperature', 'top_p', 'logprobs'],
    unlessEffortNone: true,
  },
]

export const openaiKeyMissing: Failure = {
  kind: 'key_missing',
  status: 401,
  message:
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
  param: null,
  retryAfterSeconds: null,
}

/** Returns the failure of a body that the API rejects; null = accepted. */
export function openaiProblem(body: WireObject): Failure | null {
  const unknown = unknownField(body, knownFields)
  if (unknown !== undefined) return mistake(`Unrecognized request argument supplied: ${unknown}`)
  if (typeof body.model !== 'string' || body.model === '') return mistake('you must provide a model parameter')
  if (!Array.isArray(body.messages)) return mistake("Missing required parameter: 'messages'.", 'messages')
  if (body.messages.length === 0) {
    return mistake("Invalid 'messages': empty array. Expected an array with minimum length 1.", 'messages')
  }
  for (const [name, [least, most]] of Object.entries(ranges)) {
    const value = body[name] ?? least
    if (typeof value !== 'number' || value < least || value > most) {
      return mistake(`Invalid '${name}': expected a value between ${least} and ${most}.`, name)
    }
  }
  const refused = refusedParameter(body, body.model)
  if (refused !== undefined) {
    return mistake(`Unsupported parameter: '${refused}' is not supported with this model.`, refused)
  }
  const hasTools = Array.isArray(body.tools) && body.tools.length > 0
  if (Array.isArray(body.tools) && !hasTools) return mistake("Invalid 'tools': empty array.", 'tools')
  if (body.tool_choice != null && !hasTools)
    return mistake("'tool_choice' is only allowed when 'tools' are specified.", 'tool_choice')
  if (body.stream_options != null && body.stream !== true) {
    return mistake("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options')
  }
  if (Array.isArray(body.stop) && body.stop.length > 4) return mistake("Invalid 'stop': array too long.", 'stop')
  if (body.top_logprobs != null && body.logprobs !== true) {
    return mistake("'top_logprobs' is only allowed when 'logprobs' is true.", 'top_logprobs')
  }
  return problemInMessages(objectsIn(body.messages), body)
}

export function refusedParameter(body: WireObject, model: string): string | undefined {
  const applying = parameterRules.filter(
    rule => rule.models.test(model) && !(rule.unlessEffortNone && body.reasoning_effort === 'none'),
  )
  const isDefault = (name: string) =>
    body[name] == null || ((name === 'temperature' || name === 'top_p') && body[name] === 1)
  return applying.flatMap(rule => rule.fields).find(name => !isDefault(name))
}

function problemInMessages(messages: readonly WireObject[], body: WireObject): Failure | null {
  let open = new Set<unknown>()
  for (const [index, message] of messages.entries()) {
    const role = message.role
    if (!['system', 'developer', 'user', 'assistant', 'tool', 'function'].includes(String(role))) {
      return mistake(`Invalid value: '${String(role)}'.`, `messages[${index}].role`)
    }
    if (role === 'tool') {
      if (!open.has(message.tool_call_id)) {
        return mistake(
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          `messages[${index}].role`,
        )
      }
    } else {
      open = new Set(objectsIn(message.tool_calls).map(call => call.id))
    }
  }
  const format = body.response_format
  if (isWireObject(format) && format.type === 'json_object' && !/json/i.test(JSON.stringify(messages))) {
    return mistake(
      "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
      'messages',
    )
  }
  return null
}
