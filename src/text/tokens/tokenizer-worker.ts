/**
 * Decodes token IDs of cl100k_base, the vocabulary of OpenAI's embedding models, which clients use for every model. In a
 * thread of its own: loading its table of 16 MB takes about 0.2 s.
 */
declare const self: Worker

export type TokenizerOrder = { readonly id: number; readonly lists: readonly (readonly number[])[] }
export type TokenizerReport = { readonly id: number; readonly texts: readonly string[] }

self.onmessage = async ({ data: { id, lists } }: MessageEvent<TokenizerOrder>) => {
  self.postMessage({ id, texts: await decodeTokens(lists) } satisfies TokenizerReport)
}

type Ranks = typeof import('gpt-tokenizer/bpeRanks/cl100k_base')
let ranks: Promise<Ranks> | null = null

/**
 * Returns the texts of lists of IDs, each below `tokenIdLimit`. A list that ends inside a character ends with U+FFFD.
 */
async function decodeTokens(lists: readonly (readonly number[])[]): Promise<readonly string[]> {
  ranks ??= import('gpt-tokenizer/bpeRanks/cl100k_base')
  const { default: tokens } = await ranks
  return lists.map(ids => decodeList(ids, tokens))
}

/** A token is a text, or bytes that are not whole characters. */
function decodeList(ids: readonly number[], tokens: Ranks['default']): string {
  // Otherwise the decoder drops a byte order mark.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let text = ''
  let bytes: number[] = []
  const flush = () => {
    if (bytes.length > 0) text += decoder.decode(Uint8Array.from(bytes))
    bytes = []
  }
  for (const id of ids) {
    const token = tokens[id]
    if (token === undefined) continue
    if (typeof token !== 'string') {
      bytes.push(...token)
      continue
    }
    flush()
    text += token
  }
  flush()
  return text
}
