/** Checks of Anthropic Messages: which requests the API rejects, and with which message. */
import { createHmac } from 'node:crypto'
import type { RawRequest } from './server.ts'
import {
  type Failure,
  isWireObject,
  type Mint,
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

/** Returns the failure of a request that the API rejects; null = accepted. */
export function findAnthropicProblem(headers: RawRequest['headers'], body: WireObject): Failure | null {
  if (!headers['x-api-key'] && !/^Bearer \S/.test(headers.authorization ?? ''))
    return mistake('x-api-key header is required', null, 401, 'key_missing')
  if (headers['anthropic-version'] === undefined) return mistake('anthropic-version: header is required')
  const betas = headers['anthropic-beta'] ?? ''
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
    const problem = findThinkingProblem(thinking, model, cap)
    if (problem !== null) return problem
  }
  const turns = objectsIn(messages)
  const isSystemTaken = takesSystemTurns.test(betas) || refusesBudgets.test(model)
  const refused = isSystemTaken ? -1 : turns.findIndex(({ role }) => role === 'system')
  if (refused !== -1) return mistake(`messages.${refused}.role: Input should be 'user' or 'assistant'`)
  const spoken = turns.filter(({ role }) => role !== 'system')
  return findMessageProblem(spoken, objectsIn(tools).length > 0) ?? findReplayProblem(turns, thinking)
}

function findThinkingProblem(thinking: WireObject, model: string, cap: number): Failure | null {
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

function findMessageProblem(messages: readonly WireObject[], hasTools: boolean): Failure | null {
  if (messages[0]?.role !== 'user') return mistake('messages: first message must use the "user" role')
  let open: readonly unknown[] = []
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== 'user' && role !== 'assistant')
      return mistake(`messages.${index}.role: Input should be 'user' or 'assistant'`)
    const blocks = readContent(content)
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

const nonceLength = 24
const proofLength = 40

/** A signature over the thinking that was shown, which `findReplayProblem` verifies. */
export function sign(mint: Mint, shown: string): string {
  const nonce = mint('Sim', nonceLength - 3)
  return nonce + createProof(nonce, shown)
}

function createProof(nonce: string, text: string): string {
  return createHmac('sha256', 'the simulated provider’s own key')
    .update(nonce + text)
    .digest('hex')
    .slice(0, proofLength)
}

function isSigned(signature: unknown, shown: unknown): boolean {
  if (typeof signature !== 'string' || typeof shown !== 'string') return false
  return signature.slice(nonceLength) === createProof(signature.slice(0, nonceLength), shown)
}

/** What the API says of replayed thinking that it did not write, or that lacks where it is needed; null = nothing. */
function findReplayProblem(messages: readonly WireObject[], thinking: unknown) {
  for (const [index, message] of messages.entries())
    for (const [at, block] of objectsIn(message.content).entries()) {
      const place = `messages.${index}.content.${at}`
      if (block.type === 'thinking' && typeof block.signature !== 'string')
        return mistake(`${place}.thinking.signature: Field required`)
      if (block.type === 'thinking' && !isSigned(block.signature, block.thinking))
        return mistake(`${place}: Invalid \`signature\` in \`thinking\` block`)
      if (block.type === 'redacted_thinking' && !isSigned(block.data, redactedText))
        return mistake(`${place}: Invalid \`data\` in \`redacted_thinking\` block`)
    }
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  const [first, ...rest] = objectsIn(messages[last]?.content)
  const calls = [first, ...rest].some(block => block?.type === 'tool_use')
  const isNeeded = isWireObject(thinking) && thinking.type === 'enabled' && calls
  return isNeeded && first?.type !== 'thinking' && first?.type !== 'redacted_thinking'
    ? mistake(
        `messages.${last}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first?.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
      )
    : null
}

export const redactedText = 'redacted'

/** Returns the content blocks of a message; a text is one block. */
export function readContent(content: unknown): readonly WireObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content)
}
