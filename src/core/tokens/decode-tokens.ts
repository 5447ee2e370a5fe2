/** The text behind token IDs of cl100k_base, the vocabulary of OpenAI's embedding models, which clients use for every name. */

/** IDs of cl100k_base are below it; the few special ones above stand for no text. */
export const tokenIdLimit = 100_256

type Ranks = typeof import('gpt-tokenizer/bpeRanks/cl100k_base')
let ranks: Promise<Ranks> | null = null

/**
 * Returns the texts of these lists of IDs, each below `tokenIdLimit`. A list that ends inside a character ends with U+FFFD. The
 * table takes 16 MB and a fifth of a second to load: for a thread of its own.
 */
export async function decodeTokens(lists: readonly (readonly number[])[]): Promise<readonly string[]> {
  ranks ??= import('gpt-tokenizer/bpeRanks/cl100k_base')
  const { default: tokens } = await ranks
  return lists.map(ids => decodeList(ids, tokens))
}

/** A token is a text, or the bytes of one that is no whole number of characters. */
function decodeList(ids: readonly number[], tokens: Ranks['default']): string {
  // Else a byte order mark is left out.
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
