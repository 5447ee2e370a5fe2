/**
 * `bun src/training/vocabulary.ts` builds `core/weights/vocabulary.json` from the published vocabulary of o200k_base: its
 * tokens in the order of their ranks, and for each token what the most wasteful tokenizers make of it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base'
import { type UnitClass, unitClass } from '../core/tokens/vocabulary.ts'

const source = join(import.meta.dir, '../../node_modules/gpt-tokenizer/data/o200k_base.tiktoken')

/** The tokens in the order of their ranks. A rank that is left out is a token without bytes. */
export function publishedTokens(): readonly Uint8Array[] {
  const tokens: Uint8Array[] = []
  for (const line of readFileSync(source, 'latin1').split('\n')) {
    if (line === '') continue
    const [text = '', rank = ''] = line.split(' ')
    while (tokens.length < Number(rank)) tokens.push(new Uint8Array(0))
    const token = Buffer.from(text, 'base64')
    // Some encoders join no byte order mark with what follows it, nor its three bytes: the higher count is the bound.
    tokens.push(token.includes(byteOrderMark) ? new Uint8Array(0) : token)
  }
  return tokens
}

/** Compressed columns, in base64: tokens end to end, their lengths, their weights elsewhere; and the class of each UTF-16 code unit. */
function vocabularyFile() {
  const tokens = publishedTokens()
  return {
    bytes: packed(Buffer.concat(tokens)),
    lengths: packed(Uint8Array.from(tokens, token => token.length)),
    elsewhere: packed(Uint8Array.from(tokens, weightElsewhere)),
    classes: packed(Uint8Array.from({ length: 0x10000 }, (_, unit) => classOf(unit))),
  }
}

const packed = (column: Uint8Array<ArrayBuffer>) =>
  Buffer.from(Bun.zstdCompressSync(column, { level: 19 })).toString('base64')

const byteOrderMark = Buffer.from('\ufeff')
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const asText = { disallowedSpecial: new Set<string>() }

/**
 * Tokens that another tokenizer may make of one token: what cl100k_base makes of it, and at least one for each digit
 * (SentencePiece vocabularies split numbers), each 3 symbols and each 16 blanks (their runs are shorter elsewhere).
 */
export function weightElsewhere(token: Uint8Array): number {
  const text = decoder.decode(token)
  // A part of a character: no tokenizer needs more tokens than bytes.
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

/** Halves of surrogate pairs count as symbols. */
export function classOf(unit: number): UnitClass {
  const text = String.fromCharCode(unit)
  return shapes.find(([shape]) => shape.test(text))?.[1] ?? unitClass.symbol
}

if (import.meta.main)
  await Bun.write(join(import.meta.dir, '../core/weights/vocabulary.json'), `${JSON.stringify(vocabularyFile())}\n`)
