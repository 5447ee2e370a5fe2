/**
 * Names of tools on an upstream's wire. Clients may use names that an upstream rejects, which would fail the whole request:
 * longer ones (MCP), or those of a model that invents a tool. Declarations, choice and history get the same name, and calls
 * return under the client's.
 */
import type { ChatRequest, Message } from '../core/chat/chat.ts'
import { shortToolName } from '../core/chat/tool-definitions.ts'
import type { Provider } from './provider.ts'

/**
 * Creates a source of unique names: the wanted one if unused, else the first unused `alternative`, called with
 * ascending numbers.
 */
export function uniqueNames(): (wanted: string | null, alternative: (count: number) => string) => string {
  const taken = new Set<string>()
  return (wanted, alternative) => {
    let name = wanted ?? alternative(taken.size)
    for (let count = taken.size; taken.has(name); count += 1) name = alternative(count)
    taken.add(name)
    return name
  }
}

/** OpenAI's rule, which compatible servers share. */
const usualRule: NonNullable<Provider['toolNames']> = { accepted: /^[A-Za-z0-9_-]{1,64}$/, longest: 64 }

export type WireToolNames = {
  /** The request with the names of the wire. */
  readonly request: ChatRequest
  /** The client's names, by those of the wire. */
  readonly own: ReadonlyMap<string, string>
}

/** Returns the request for the upstream; null = it accepts every name. */
export function wireToolNames(request: ChatRequest, provider: Pick<Provider, 'toolNames'>): WireToolNames | null {
  const { accepted, longest } = provider.toolNames ?? usualRule
  const names = namesIn(request)
  const refused = names.filter(name => !accepted.test(name))
  if (refused.length === 0) return null
  const unique = uniqueNames()
  for (const name of names) if (accepted.test(name)) unique(name, () => name)
  const wire = new Map<string, string>()
  for (const name of refused) {
    // A character less than allowed, since Google requires a letter or `_` at the start.
    const spelled = (text: string) => {
      const short = shortToolName(text, longest - 1)
      return accepted.test(short) ? short : `_${short}`
    }
    wire.set(
      name,
      unique(spelled(name), count => spelled(`${count}_${name}`)),
    )
  }
  const own = new Map([...wire].map(([client, short]) => [short, client]))
  return { request: renamed(request, name => wire.get(name) ?? name), own }
}

/** Returns every name once. */
function namesIn({ tools, messages }: ChatRequest): readonly string[] {
  const names = new Set(tools.map(({ name }) => name))
  for (const message of messages)
    if (message.role === 'assistant') for (const { name } of message.toolCalls) names.add(name)
  return [...names]
}

function renamed(request: ChatRequest, wireName: (name: string) => string): ChatRequest {
  const named = <T extends { readonly name: string }>(item: T): T => ({ ...item, name: wireName(item.name) })
  const { toolChoice } = request
  return {
    ...request,
    tools: request.tools.map(named),
    toolChoice: typeof toolChoice === 'object' && toolChoice !== null ? named(toolChoice) : toolChoice,
    messages: request.messages.map(
      (message): Message =>
        message.role === 'assistant' ? { ...message, toolCalls: message.toolCalls.map(named) } : message,
    ),
  }
}
