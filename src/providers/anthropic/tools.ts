import type { Message, Tool, ToolChoice } from '../../core/chat/chat.ts'
import type { MarkedBlocks } from '../cache-marks.ts'
import { isVisible } from '../conversation-steps.ts'
import type { Json } from '../json.ts'
import type { ProviderAsk } from '../provider.ts'
import { type JsonAnswer, jsonAnswerTool } from './json-answer.ts'
import { closed, isClosable, objectSchema } from './schema.ts'

type WireChoice = {
  readonly type: string
  readonly name?: string | undefined
  readonly disable_parallel_tool_use?: true | undefined
}

/**
 * Returns the tools and the tool choice. A history with calls requires tools even if the client offers none now: they
 * are derived from it and cannot be called.
 */
export function toolsFor(
  { ask, model }: ProviderAsk,
  json: JsonAnswer,
  marks: MarkedBlocks,
): { readonly tools: readonly Json[]; readonly choice: WireChoice | null } {
  const offered = ask.tools.map(tool => {
    const block = toolFor(tool, model.parameters.responseFormat === 'json_schema')
    if (tool.cache !== undefined) marks.set(block, tool.cache)
    return block
  })
  const tools = offered.length > 0 ? offered : rememberedTools(ask.messages)
  const disable_parallel_tool_use = ask.parallelToolCalls === false || undefined
  if (json.kind === 'tool') {
    const { schema: parameters, description } = json
    const answer = toolFor({ name: jsonAnswerTool, description, parameters, strict: false }, false)
    const orOffered = offered.length > 0 && ask.toolChoice !== 'none'
    const choice: WireChoice = orOffered
      ? { type: 'any', disable_parallel_tool_use }
      : { type: 'tool', name: jsonAnswerTool, disable_parallel_tool_use: true }
    return { tools: [...tools, answer], choice }
  }
  if (tools.length === 0) return { tools, choice: null }
  if (offered.length === 0 || ask.toolChoice === 'none') return { tools, choice: { type: 'none' } }
  if (ask.toolChoice === null && disable_parallel_tool_use === undefined) return { tools, choice: null }
  return { tools, choice: { ...choiceFor(ask.toolChoice ?? 'auto'), disable_parallel_tool_use } }
}

function choiceFor(choice: Exclude<ToolChoice, 'none'>): WireChoice {
  switch (choice) {
    case 'auto':
      return { type: choice }
    case 'required':
      return { type: 'any' }
    default:
      return { type: 'tool', name: choice.name }
  }
}

/** Returns true if the choice leaves the model no text output. */
export function isForced(choice: WireChoice | null): choice is WireChoice {
  return choice?.type === 'any' || choice?.type === 'tool'
}

function rememberedTools(messages: readonly Message[]): readonly Json[] {
  const calls = messages.flatMap(message => (message.role === 'assistant' ? message.toolCalls : []))
  const names = new Set(calls.map(({ name }) => name))
  return [...names].map(name => ({ name, input_schema: objectSchema({}) }))
}

function toolFor(tool: Tool, strictTools: boolean): Json {
  const parameters = tool.parameters ?? {}
  const strict = strictTools && tool.strict === true && isClosable(objectSchema(parameters))
  const { anyOf, oneOf, allOf, ...plain } = parameters
  // The API rejects these at the root of a tool's schema. The model still follows them in the description.
  const alternatives = JSON.stringify({ anyOf, oneOf, allOf })
  const note = alternatives === '{}' ? '' : `Arguments must also satisfy: ${alternatives}`
  const schema = objectSchema(plain)
  return {
    name: tool.name,
    description: [tool.description ?? '', note].filter(isVisible).join('\n') || undefined,
    input_schema: strict ? closed(schema) : schema,
    strict: strict || undefined,
  }
}
