/**
 * Fields of a compatible request without a meaning for the gateway, and the kinds of providers that receive each. An
 * unlisted field could select another server, key, model or price, so it is dropped and reported. Nested objects need
 * no list, because adapters build messages, tools and response formats field by field.
 */
import type { ChatRequest } from '../core/chat/chat.ts'
import { ownFields } from '../core/chat/provider-features.ts'
import { isRecord, type Json } from './json.ts'

type ProviderKind = 'openai' | 'anthropic' | 'google' | 'compatible'

/** Allowed value of a field: one scalar, a list of them, any JSON, or an object of scalars with these names. */
type Shape = 'scalar' | 'scalars' | 'any' | readonly string[]

const names = (shape: Shape, list: string) => Object.fromEntries(list.split(/\s+/).map(name => [name, shape]))

/** Sources: OpenAI's reference; vLLM, SGLang, llama.cpp, Groq, Mistral, DeepSeek, Moonshot, Z.ai, DashScope, OpenRouter docs. */
const fieldsTable: Readonly<Record<ProviderKind, Readonly<Record<string, Shape>>>> = {
  openai: {
    ...names('scalar', 'verbosity service_tier safety_identifier prompt_cache_key prompt_cache_retention'),
    modalities: 'scalars',
    prediction: 'any',
    moderation: 'any',
    prompt_cache_options: ['mode', 'ttl'],
  },
  anthropic: {},
  google: { top_k: 'scalar', safetySettings: 'any' },
  // Excludes everything that multiplies the output, runs searches, loads templates, code or adapters, or changes queue
  // priority.
  compatible: {
    ...names('scalar', 'top_k min_p top_a typical_p repetition_penalty length_penalty no_repeat_ngram_size'),
    ...names(
      'scalar',
      'mirostat mirostat_tau mirostat_eta dynatemp_range dynatemp_exponent xtc_probability xtc_threshold',
    ),
    ...names(
      'scalar',
      'min_tokens ignore_eos skip_special_tokens spaces_between_special_tokens include_stop_str_in_output',
    ),
    ...names(
      'scalar',
      'verbosity service_tier prompt_cache_key cache_prompt safe_prompt prompt_mode enable_thinking thinking_budget',
    ),
    ...names('scalar', 'include_reasoning reasoning_format reasoning_split'),
    ...names('scalars', 'stop_token_ids bad_words guided_choice'),
    guided_json: 'any',
    prediction: 'any',
    thinking: ['type', 'budget_tokens', 'clear_thinking'],
    reasoning: ['effort', 'max_tokens', 'exclude', 'enabled'],
  },
}

type Options = {
  /** Names that the operator adds to the list, with any value. */
  readonly listed?: readonly string[]
  /** Model-specific check: false if the model rejects this value. */
  readonly takes?: (name: string, value: unknown) => boolean
}

/** Returns the extras to send, and the names of dropped ones in their order. */
export function sortExtras(
  kind: ProviderKind,
  extras: ChatRequest['extras'],
  { listed = [], takes = () => true }: Options = {},
): { readonly sent: Json; readonly dropped: readonly string[] } {
  const sent: Record<string, unknown> = {}
  const dropped: string[] = []
  for (const name of Object.keys(extras)) {
    const value = extras[name]
    if (value === null || value === undefined || ownFields.has(name)) continue
    const shape = findShape(kind, name, listed)
    if (shape !== null && fits(shape, value) && takes(name, value)) sent[name] = value
    else dropped.push(name)
  }
  return { sent, dropped }
}

function findShape(kind: ProviderKind, name: string, listed: readonly string[]): Shape | null {
  if (listed.includes(name)) return 'any'
  return Object.hasOwn(fieldsTable[kind], name) ? (fieldsTable[kind][name] ?? null) : null
}

function fits(shape: Shape, value: unknown): boolean {
  if (shape === 'any') return true
  if (shape === 'scalar') return isScalar(value)
  if (shape === 'scalars') return Array.isArray(value) && value.every(isScalar)
  return isRecord(value) && Object.entries(value).every(([name, field]) => shape.includes(name) && isScalar(field))
}

function isScalar(value: unknown): boolean {
  return value === null || typeof value !== 'object'
}
