/**
 * `bun src/training/vocabulary.ts` builds `text/weights/vocabulary.json` from the published vocabulary of o200k_base:
 * its tokens in rank order, and for each token the count of the least efficient tokenizers.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base'
import { type UnitClass, unitClass } from '../text/tokens/vocabulary.ts'

const source = join(import.meta.dir, '../../node_modules/gpt-tokenizer/data/o200k_base.tiktoken')

/** Returns the tokens in rank order. A missing rank is a token without bytes. */
export function publishedTokens(): readonly Uint8Array[] {
  const tokens: Uint8Array[] = []
  for (const line of readFileSync(source, 'latin1').split('\n')) {
    if (line === '') continue
    const [text = '', rank = ''] = line.split(' ')
    while (tokens.length < Number(rank)) tokens.push(new Uint8Array(0))
    const token = Buffer.from(text, 'base64')
    // Some encoders do not join a byte order mark with the following text, nor its three bytes: the higher count is the
    // bound.
    tokens.push(token.includes(byteOrderMark) ? new Uint8Array(0) : token)
  }
  return tokens
}

/**
 * Returns compressed columns in base64: concatenated tokens, their lengths, their counts elsewhere; and the class of
 * each UTF-16 code unit.
 */
function vocabularyFile() {
  const tokens = publishedTokens()
  return {
    bytes: packed(Buffer.concat(tokens)),
    lengths: packed(Uint8Array.from(tokens, token => token.length)),
    elsewhere: packed(Uint8Array.from(tokens, weightElsewhere)),
    classes: packed(Uint8Array.from({ length: 0x10000 }, (_, unit) => getClass(unit))),
  }
}

const packed = (column: Uint8Array<ArrayBuffer>) =>
  Buffer.from(Bun.zstdCompressSync(column, { level: 19 })).toString('base64')

const byteOrderMark = Buffer.from('\ufeff')
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const asText = { disallowedSpecial: new Set<string>() }

/**
 * Returns an upper bound of tokens that another tokenizer makes of one token: the count of cl100k_base, and at least
 * one per digit (SentencePiece vocabularies split numbers), per 3 symbols and per 16 blanks (whose runs are shorter
 * elsewhere).
 */
export function weightElsewhere(token: Uint8Array): number {
  const text = decoder.decode(token)
  // Part of a character: no tokenizer needs more tokens than bytes.
  if (text.includes('\ufffd')) return Math.max(1, token.length)
  const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0
  const digits = count(/\p{N}/gu)
  const symbols = Math.ceil(count(/[^\s\p{L}\p{N}\p{M}]/gu) / 3)
  const blanks = Math.ceil(count(/\s/gu) / 16)
  return Math.min(255, Math.max(countTokens(text, asText), digits, symbols, blanks))
}

const shapes: readonly (readonly [shape: RegExp, unitClass: UnitClass])[] = [
  [/\p{Ll}/u, unitClass.lower],
  [/[\p{Lu}\p{Lt}]/u, unitClass.upper],
  [/\p{L}/u, unitClass.caseless],
  [/\p{M}/u, unitClass.mark],
  [/\p{N}/u, unitClass.digit],
  [/[\r\n]/, unitClass.newline],
  [/\s/, unitClass.blank],
]

/** Returns the class of a unit. Surrogate halves count as symbols. */
export function getClass(unit: number): UnitClass {
  const text = String.fromCharCode(unit)
  return shapes.find(([shape]) => shape.test(text))?.[1] ?? unitClass.symbol
}

if (import.meta.main)
  await Bun.write(join(import.meta.dir, '../text/weights/vocabulary.json'), `${JSON.stringify(vocabularyFile())}\n`)
