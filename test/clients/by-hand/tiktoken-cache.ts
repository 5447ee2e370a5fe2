/**
 * Writes the vocabulary that `tiktoken` downloads otherwise, for machines without the Internet:
 * `bun test/clients/by-hand/tiktoken-cache.ts <folder>`, then TIKTOKEN_CACHE_DIR is that folder. tiktoken checks its hash.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ranks from 'gpt-tokenizer/esm/bpeRanks/cl100k_base'

const source = 'https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken'
const [, , folder = ''] = process.argv
const encoded = ranks.map((token, rank) => {
  const bytes = typeof token === 'string' ? Buffer.from(token, 'utf8') : Buffer.from(token)
  return `${bytes.toString('base64')} ${rank}\n`
})
mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, new Bun.CryptoHasher('sha1').update(source).digest('hex')), encoded.join(''))
