/** Decodes token IDs of cl100k_base, the vocabulary of OpenAI's embedding models, which clients use for every model. */

/** IDs of cl100k_base are below this; the few special ones above stand for no text. */
export const tokenIdLimit = 100_256

type Encoding = typeof import('gpt-tokenizer/encoding/cl100k_base')
let encoding: Promise<Encoding> | null = null

/**
 * Returns the texts of lists of IDs, each below `tokenIdLimit`. Loads tables of 100 MB, so it must run in a separate
 * thread.
 */
export async function decodeTokens(lists: readonly (readonly number[])[]): Promise<readonly string[]> {
  encoding ??= import('gpt-tokenizer/encoding/cl100k_base')
  const { decode } = await encoding
  return lists.map(ids => decode([...ids]))
}
