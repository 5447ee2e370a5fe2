/** Why an upstream refused a request: the field and the code that it names. Its text is never passed on. */
import { findIdentifier } from './failure.ts'
import { getText, record } from './json.ts'
import type { RefusalReason } from './provider.ts'

/** Names of request fields in the upstreams' APIs, by the name that they have in a chat request of the gateway. */
const namesTable: Readonly<Record<string, string>> = {
  max_output_tokens: 'max_tokens max_completion_tokens maxOutputTokens maxTokens num_predict',
  messages: 'input contents content system instructions systemInstruction system_instruction',
  response_format:
    'text format json_schema output_config output_format responseSchema response_schema responseJsonSchema response_json_schema responseMimeType response_mime_type',
  reasoning_effort:
    'reasoning effort thinking thinkingConfig thinking_config thinkingBudget thinkingLevel budget_tokens',
  stop: 'stop_sequences stopSequences',
  tools: 'functions functionDeclarations function_declarations toolConfig.functionDeclarations input_schema',
  tool_choice: 'function_call toolConfig tool_config allowedFunctionNames',
  n: 'candidateCount candidate_count',
  seed: 'random_seed',
  user: 'safety_identifier user_id',
  top_p: 'topP',
  top_k: 'topK',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  logprobs: 'responseLogprobs response_logprobs',
}
const unchanged =
  'model temperature stream stream_options logit_bias top_logprobs parallel_tool_calls metadata store verbosity service_tier prompt_cache_key prompt_cache_retention prompt_cache_options prediction modalities audio web_search_options truncation include'

const known: ReadonlyMap<string, string> = new Map([
  ...unchanged.split(' ').map(name => [name, name] as const),
  ...Object.entries(namesTable).flatMap(([name, others]) =>
    [name, ...others.split(' ')].map(other => [other, name] as const),
  ),
])

/** Names that are also words. A text names a field with them only at its beginning. */
const words: ReadonlySet<string> = new Set('input text content format system stop user store model n'.split(' '))

/**
 * Returns the reason; undefined = the upstream names neither a field nor a code. `extras` may be named too: the client
 * sent fields of these names, and only routing knows them.
 */
export function refusalReason(param: unknown, code: unknown, message: string): RefusalReason | undefined {
  const named = findField(getText(param)) ?? fieldInText(message.slice(0, maximumText))
  const other = named === null && /^\w{1,64}$/.test(getText(param)) ? getText(param) : null
  const ownCode = typeof code === 'string' ? findIdentifier(code.toLowerCase()) : null
  if (named === null && other === null && ownCode === null) return undefined
  return { field: named, otherField: other, code: ownCode }
}

/** A field is named near the beginning. */
const maximumText = 2_048

/** Returns the field of a path such as `tools[3].function.parameters`, with the index of a tool; null = unknown. */
function findField(path: string): string | null {
  const parts = path.slice(0, 256).split(/[^\w]+/)
  for (const [at, part] of parts.entries()) {
    const name = known.get(part)
    if (name === undefined) continue
    const next = parts[at + 1] ?? ''
    // `output_config.effort` and `reasoning.effort` are fields of their own here.
    if (next === 'effort') return 'reasoning_effort'
    return name === 'tools' && /^\d{1,4}$/.test(next) ? `tools.${next}` : name
  }
  return null
}

/** Returns the field that a text names: before a colon at its start, or in quotes. */
function fieldInText(text: string): string | null {
  const [, first] = /^\W{0,2}([\w.[\]]{1,128}):\s/.exec(text) ?? []
  const leading = first === undefined ? null : findField(first)
  if (leading !== null) return leading
  for (const [, quoted = ''] of text.matchAll(/[`'"]([A-Za-z][\w.[\]]{0,127})[`'"]/g))
    if (!words.has(quoted)) {
      const field = findField(quoted)
      if (field !== null) return field
    }
  return null
}

/** Returns the path of a field in FastAPI's form: `{"detail":[{"loc":["body","temperature"]}]}`. */
export function getLocation(detail: unknown): string {
  const { loc } = record(Array.isArray(detail) ? detail[0] : null)
  return Array.isArray(loc) ? loc.filter(part => part !== 'body').join('.') : ''
}
