/** Checks of Anthropic Messages: which requests the API rejects, and with which message. */
import { contentBlocks, problemInThinkingBlocks } from './anthropic-blocks.ts'
import {
  type Failure,
  isWireObject,
  mistake,
  numberOr,
  objectsIn,
  textOr,
  unknownField,
  type WireObject,
} from './wire-format.ts'

const knownFields = new Set(
  `model messages max_tokens system temperature top_p top_k stop_sequences stream tools tool_choice output_config thinking
  metadata service_tier container inference_geo cache_control`.split(/\s+/),
)

/** Fields that are refused without the header of their beta. */
const betaFields: readonly (readonly [field: string, beta: RegExp])[] = [
  ['context_management', /context-management-/],
  ['mcp_servers', /mcp-client-/],
  ['output_format', /structured-outputs-/],
  ['speed', /fast-mode-/],
]
const takesSystemTurns = /mid-conversation-system-/

const refusesSampling = /^claude-(opus-4-[7-9]|opus-[5-9]|sonnet-[5-9]|haiku-5-5|fable)/
const refusesForcedTools = /^claude-(opus-5-5|sonnet-5-5|fable-5)/
/** Models that choose their thinking budget themselves and accept system turns. */
export const refusesBudgets = /^claude-(opus-4-[7-9]|opus-[5-9]|haiku-5-5|sonnet-5-5|fable)/
const cannotSwitchThinkingOff = /^claude-(opus-5-5|sonnet-5-5|fable)/

export const anthropicKeyMissing: Failure = {
  kind: 'key_missing',
  status: 401,
  message: 'x-api-key header is required',
  param: null,
  retryAfterSeconds: null,
}
export const anthropicVersionMissing = mistake('anthropic-version: header is required')

/** Returns the failure of a body that the API rejects; null = accepted. */
export function anthropicProblem(body: WireObject, betas: string): Failure | null {
  const { model, messages, max_tokens: cap, temperature, tools, thinking, tool_choice: choice } = body
  for (const name of ['model', 'messages', 'max_tokens']) {
    if (body[name] == null) return mistake(`${name}: Field required`)
  }
  const inBeta = betaFields.filter(([, beta]) => beta.test(betas)).map(([field]) => field)
  const unknown = unknownField(body, new Set([...knownFields, ...inBeta]))
  if (unknown !== undefined) return mistake(`${unknown}: Extra inputs are not permitted`)
  if (typeof model !== 'string' || model === '') return mistake('model: String should have at least 1 character')
  if (typeof cap !== 'number' || cap < 1) return mistake('max_tokens: Input should be greater than or equal to 1')
  if (!Array.isArray(messages) || messages.length === 0) return mistake('messages: at least one message is required')
  if (temperature != null && !(typeof temperature === 'number' && temperature >= 0 && temperature <= 1)) {
    return mistake('temperature: range: 0..1')
  }
  if (refusesSampling.test(model)) {
    const refused = ['temperature', 'top_p', 'top_k'].find(name => body[name] != null)
    if (refused !== undefined) return mistake(`${refused}: this parameter is not supported with this model`)
  }
  if (isWireObject(choice) && (choice.type === 'any' || choice.type === 'tool') && refusesForcedTools.test(model)) {
    return mistake(`tool_choice: type "${String(choice.type)}" is not supported with this model`)
  }
  if (isWireObject(choice) && objectsIn(tools).length === 0)
    return mistake('tool_choice may only be specified while providing tools')
  for (const [index, tool] of objectsIn(tools).entries()) {
    const schema = tool.input_schema
    if (tool.type === undefined && !(isWireObject(schema) && schema.type === 'object')) {
      return mistake(`tools.${index}.custom.input_schema.type: Input should be 'object'`)
    }
  }
  if (isWireObject(thinking)) {
    const problem = problemInThinking(thinking, model, cap)
    if (problem !== null) return problem
  }
  const turns = objectsIn(messages)
  const isSystemTaken = takesSystemTurns.test(betas) || refusesBudgets.test(model)
  const refused = isSystemTaken ? -1 : turns.findIndex(({ role }) => role === 'system')
  if (refused !== -1) return mistake(`messages.${refused}.role: Input should be 'user' or 'assistant'`)
  const spoken = turns.filter(({ role }) => role !== 'system')
  return problemInMessages(spoken, objectsIn(tools).length > 0) ?? problemInThinkingBlocks(turns, thinking)
}

function problemInThinking(thinking: WireObject, model: string, cap: number): Failure | null {
  if (thinking.type === 'disabled' && cannotSwitchThinkingOff.test(model)) {
    return mistake('thinking.type: "disabled" is not supported with this model')
  }
  if (thinking.type !== 'enabled') return null
  if (refusesBudgets.test(model))
    return mistake('thinking.type: "enabled" is not supported with this model; use "adaptive"')
  const budget = numberOr(thinking.budget_tokens, 0)
  if (budget < 1_024) return mistake('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024')
  return budget < cap ? null : mistake('`max_tokens` must be greater than `thinking.budget_tokens`')
}

function problemInMessages(messages: readonly WireObject[], hasTools: boolean): Failure | null {
  if (messages[0]?.role !== 'user') return mistake('messages: first message must use the "user" role')
  let open: readonly unknown[] = []
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== 'user' && role !== 'assistant')
      return mistake(`messages.${index}.role: Input should be 'user' or 'assistant'`)
    const blocks = contentBlocks(content)
    if (blocks.length === 0) return mistake(`messages.${index}: all messages must have non-empty content`)
    if (blocks.some(block => block.type === 'text' && !textOr(block.text, '').trim())) {
      return mistake('messages: text content blocks must be non-empty')
    }
    const answered = blocks.filter(block => block.type === 'tool_result').map(block => block.tool_use_id)
    const missing = open.find(id => !answered.includes(id))
    if (missing !== undefined) {
      return mistake(
        `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${String(missing)}.`,
      )
    }
    const stray = answered.find(id => !open.includes(id))
    if (stray !== undefined) {
      return mistake(`messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(stray)}.`)
    }
    open = blocks.filter(block => block.type === 'tool_use').map(block => block.id)
    if (open.length > 0 && !hasTools)
      return mistake('Requests which include `tool_use` or `tool_result` blocks must define tools.')
  }
  return null
}
