import { isDemanding } from '../../core/chat/tool-definitions.ts'
import type { ParameterRules } from '../../core/models/models.ts'
import { wireName } from '../anthropic/conversation.ts'
import { isVisible, type PartWriter, placeholderTexts, systemTexts, turnsOf } from '../conversation-steps.ts'
import { sortExtras } from '../extras.ts'
import { inlineImage } from '../images.ts'
import { encoded, type Json, objectIn } from '../json.ts'
import { uniqueNames } from '../names.ts'
import { formatFor } from '../openai/request.ts'
import { droppedNames, instructionFor, mayForce, nearestEffort, nonEmpty, parametersFor } from '../parameters.ts'
import type { ProviderAsk } from '../provider.ts'

/** Parameters that Converse lacks for all models. */
const wordless = {
  penalties: false,
  seed: false,
  logitBias: false,
  logprobs: false,
  maximumChoices: 1,
} satisfies Partial<ParameterRules>

/** Builds the body of Converse and ConverseStream. */
export function toConverseBody({ ask, model, outputCap }: ProviderAsk): {
  readonly body: string
  readonly droppedParameters: readonly string[]
} {
  const rules = model.parameters
  const effort = ask.reasoningEffort === null ? null : nearestEffort(ask.reasoningEffort, rules.efforts)
  const thinks = effort !== null && effort !== 'none'
  const parameters = parametersFor(ask, { ...rules, ...wordless }, thinks)
  const { dropped } = parameters
  if (ask.reasoningEffort !== null && effort === null) dropped.add('reasoning_effort')
  if (ask.parallelToolCalls !== null && ask.tools.length > 0) dropped.add('parallel_tool_calls')
  const { field, instruction, lesser } = formatFor(ask.responseFormat, rules.responseFormat)
  if (lesser) dropped.add('response_format')
  const toolConfig = toolsFor({ ask, model }, thinks, dropped)
  const unforced = isDemanding(ask.toolChoice) && ask.tools.length > 0 && toolConfig?.toolChoice === undefined
  const system = [
    ...systemTexts(ask.messages),
    ...(instruction === null ? [] : [instruction.text]),
    ...(unforced ? [instructionFor(ask.toolChoice)] : []),
  ]
  const body = {
    messages: messagesFor({ ask, model }, toolConfig !== undefined),
    system: nonEmpty(system.map(text => ({ text }))),
    inferenceConfig: {
      maxTokens: outputCap,
      temperature: parameters.temperature === undefined ? undefined : Math.min(1, parameters.temperature),
      topP: parameters.topP,
      stopSequences: nonEmpty(parameters.stops?.filter(isVisible) ?? []),
    },
    toolConfig,
    outputConfig: field === undefined ? undefined : outputConfigFor({ ask }, field),
    additionalModelRequestFields: effort === null ? undefined : { reasoning_effort: effort },
  }
  const extras = sortExtras('anthropic', ask.extras).dropped
  return { body: encoded(body), droppedParameters: droppedNames(dropped, extras, ask.source) }
}

/** Converse takes the schema as text. */
function outputConfigFor({ ask: { responseFormat } }: Pick<ProviderAsk, 'ask'>, field: Json): Json | undefined {
  if (responseFormat.type !== 'json_schema' || field.type !== 'json_schema') return undefined
  const { name, description, schema } = responseFormat
  const jsonSchema = { name: wireName(name), description: description ?? undefined, schema: JSON.stringify(schema) }
  return { textFormat: { type: 'json_schema', structure: { jsonSchema } } }
}

type Question = Pick<ProviderAsk, 'ask' | 'model'>

/**
 * Returns the tools and the choice; undefined = none. Converse cannot forbid calls while it offers tools, and requires
 * tools if the history has calls.
 */
function toolsFor({ ask, model }: Question, thinks: boolean, dropped: Set<string>): Json | undefined {
  const { tools, toolChoice, messages } = ask
  const calls = messages.flatMap(message => (message.role === 'assistant' ? message.toolCalls : []))
  if (tools.length === 0 || (toolChoice === 'none' && calls.length === 0)) {
    if (calls.length === 0) return undefined
    const names = new Set(calls.map(({ name }) => name))
    return { tools: [...names].map(name => ({ toolSpec: { name, inputSchema: { json: { type: 'object' } } } })) }
  }
  const isForced = isDemanding(toolChoice) && mayForce(model.parameters, thinks)
  if (toolChoice === 'none' || (isDemanding(toolChoice) && !isForced)) dropped.add('tool_choice')
  return {
    tools: tools.map(({ name, description, parameters }) => ({
      toolSpec: {
        name,
        description: description !== null && isVisible(description) ? description : undefined,
        inputSchema: { json: { ...parameters, type: 'object' } },
      },
    })),
    toolChoice: isForced ? (toolChoice === 'required' ? { any: {} } : { tool: { name: toolChoice.name } }) : undefined,
  }
}

function messagesFor({ ask, model }: Question, withTools: boolean): readonly Json[] {
  const turns = turnsOf<Json>(ask.messages, model.parameters.prefill && !withTools, blockWriter())
  return turns.map(({ role, parts }) => ({ role, content: parts }))
}

const imageFormats: ReadonlyMap<string, string> = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpeg'],
  ['image/jpg', 'jpeg'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
])

function blockWriter(): PartWriter<Json> {
  const unique = uniqueNames()
  let documents = 0
  return {
    text: text => ({ text }),
    image(url) {
      const image = inlineImage(url)
      const format = imageFormats.get(image?.kind ?? '')
      // Unsupported data is sent all the same, so that the output does not ignore the image: the API rejects it.
      return { image: { format: format ?? 'png', source: { bytes: image?.isBase64 ? image.data : '' } } }
    },
    // Bedrock allows few characters in names, and requires unique ones.
    file: ({ url }) => {
      const name = `document-${++documents}`
      return { document: { format: 'pdf', name, source: { bytes: inlineImage(url)?.data ?? '' } } }
    },
    exchange({ call, result, isError }) {
      const clean = wireName(call.id)
      const toolUseId = unique(clean, count => `${clean.slice(0, 63 - String(count).length)}_${count}`)
      const text = result === null ? placeholderTexts.missingResult : isVisible(result) ? result : '(empty)'
      const status = result === null || isError ? 'error' : undefined
      return [
        { toolUse: { toolUseId, name: call.name, input: objectIn(call.arguments) ?? {} } },
        { toolResult: { toolUseId, content: [{ text }], status } },
      ]
    },
  }
}
