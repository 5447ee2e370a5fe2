/** The body of a playground request in each API form. */

/** API forms in which the playground shows a request. */
export const codeDialects = ['chat_completions', 'responses', 'messages'] as const
export type CodeDialect = (typeof codeDialects)[number]

/** A request as the playground would send it. */
export type CodeRequest = {
  /** Address of the gateway, without a path. */
  readonly origin: string
  readonly model: string
  /** Headers of the gateway (`X-Gateway-*`) that differ from the defaults. */
  readonly headers: Readonly<Record<string, string>>
  readonly messages: readonly ChatMessage[]
  /** In the native form; other forms name them differently. */
  readonly parameters: Pick<
    PlaygroundRequest,
    'temperature' | 'top_p' | 'max_output_tokens' | 'reasoning_effort' | 'tools'
  >
}

/** Output cap of Messages requests, which require one. */
const maxTokens = 1024

/** The body in the API form of the dialect, without what is not set. */
export function codeBody(request: CodeRequest, dialect: CodeDialect): Readonly<Record<string, unknown>> {
  const { model, messages, parameters } = request
  const { temperature, top_p, max_output_tokens, reasoning_effort, tools } = parameters
  const system = messages.find(({ role }) => role === 'system')?.content
  const turns = messages.filter(({ role }) => role !== 'system').map(message => messageIn(message, dialect))
  const shared = { temperature, top_p, tools: tools?.map(tool => toolIn(tool, dialect)) }
  switch (dialect) {
    case 'chat_completions':
      return set({
        model,
        messages: messages.map(message => messageIn(message, dialect)),
        ...shared,
        max_completion_tokens: max_output_tokens,
        reasoning_effort,
      })
    case 'responses':
      return set({
        model,
        instructions: system,
        input: turns,
        store: false,
        ...shared,
        max_output_tokens,
        reasoning: reasoning_effort === undefined ? undefined : { effort: reasoning_effort },
      })
    case 'messages':
      return set({
        model,
        max_tokens: max_output_tokens ?? maxTokens,
        system,
        messages: turns,
        ...shared,
        ...toThinking(reasoning_effort),
      })
  }
}

/** The Messages form has no effort below `low`. */
function toThinking(effort: CodeRequest['parameters']['reasoning_effort']) {
  if (effort === undefined) return {}
  if (effort === 'none') return { thinking: { type: 'disabled' } }
  return { output_config: { effort: effort === 'minimal' ? 'low' : effort } }
}

const set = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

function messageIn({ role, content }: ChatMessage, dialect: CodeDialect) {
  return { role, content: typeof content === 'string' ? content : content.map(part => partIn(part, dialect)) }
}

function partIn(part: ChatPart, dialect: CodeDialect) {
  if (part.type === 'text') return { type: dialect === 'responses' ? 'input_text' : 'text', text: part.text }
  const { url } = part
  switch (dialect) {
    case 'chat_completions':
      return { type: 'image_url', image_url: { url } }
    case 'responses':
      return { type: 'input_image', image_url: url, detail: 'auto' }
    case 'messages':
      return { type: 'image', source: toImageSource(url) }
  }
}

function toImageSource(url: string) {
  const [, media_type, data] = /^data:([^;]+);base64,(.*)$/s.exec(url) ?? []
  return media_type === undefined ? { type: 'url', url } : { type: 'base64', media_type, data }
}

/** A tool as written by the user. One in an unknown form stays as it is: the API names what is wrong with it. */
function toolIn(tool: unknown, dialect: CodeDialect): unknown {
  const named = Object(tool).function
  if (dialect === 'chat_completions' || typeof named !== 'object' || named === null) return tool
  // The types of the client require `strict`; without it the other forms mean false.
  if (dialect === 'responses') return { type: 'function', strict: false, ...named }
  const { name, description, parameters } = named
  return set({ name, description, input_schema: parameters ?? { type: 'object' } })
}

/** The body that the playground sends, in the native form. */
export type ChatPart =
  | { readonly type: 'text'; readonly text: string }
  /** An address, or the image itself as `data:image/png;base64,…`. */
  | { readonly type: 'image'; readonly url: string }

export type ChatMessage = {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string | readonly ChatPart[]
}

export type PlaygroundRequest = {
  readonly messages: readonly ChatMessage[]
  readonly model: string
  readonly strategy?: string
  readonly enhance_prompt?: boolean
  readonly web?: 'auto' | 'off'
  readonly max_output_tokens?: number
  readonly temperature?: number
  readonly top_p?: number
  readonly reasoning_effort?: string
  /** Functions as written by the user; the API checks them. */
  readonly tools?: readonly unknown[]
  readonly stream_mode: 'buffered' | 'realtime'
}
