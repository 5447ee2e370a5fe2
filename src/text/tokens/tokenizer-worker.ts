/** Tokenizers in a separate thread: loading their tables takes about 0.5 s, and dense text takes long to count. */
import { decodeTokens } from './decode-tokens.ts'
import { countTokens } from './tokens.ts'

declare const self: Worker

export type TokenizerOrder =
  | { readonly id: number; readonly kind: 'count'; readonly texts: readonly string[] }
  | { readonly id: number; readonly kind: 'decode'; readonly lists: readonly (readonly number[])[] }
export type TokenizerReport =
  | { readonly id: number; readonly kind: 'count'; readonly tokens: number }
  | { readonly id: number; readonly kind: 'decode'; readonly texts: readonly string[] }

self.onmessage = async (event: MessageEvent<TokenizerOrder>) => {
  self.postMessage((await carriedOut(event.data)) satisfies TokenizerReport)
}

async function carriedOut(order: TokenizerOrder): Promise<TokenizerReport> {
  const { id } = order
  if (order.kind === 'decode') return { id, kind: 'decode', texts: await decodeTokens(order.lists) }
  let tokens = 0
  for (const text of order.texts) tokens += await countTokens(text)
  return { id, kind: 'count', tokens }
}
