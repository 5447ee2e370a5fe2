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
