import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { levels } from '../models/capability-levels.ts'

/** Folder of the labeled sets: beside the checkout, never in it. */
const folder = join(import.meta.dir, '../../../shared/data')

const text = Type.String()
const textOrNull = Type.Union([text, Type.Null()])
const number = Type.Number()
const level = Type.Union(levels.map(name => Type.Literal(name)))

/** All columns of the labeled sets; a set has some of them. */
const columns = Type.Object({
  ...{ prompt: text, source: text, lang: text, group: text, detail: text },
  /** The original of a translation. */
  english: Type.Optional(textOrNull),
  /** Translations by language. */
  texts: Type.Record(text, text),
  ...{ type: textOrNull, also: Type.Array(text), family: text, task: Type.Optional(textOrNull) },
  ...{ needs_current: Type.Union([Type.Boolean(), Type.Null()]), fact_type: text },
  ...{ unsafe: number, flagged: number, injection: number, clear: Type.Optional(number) },
  ...{ domain: text, language: text, easy: text, hard: text, easy_level: level, hard_level: level },
  ...{ weak: number, strong: number, scores: Type.Record(text, number) },
})
type Columns = Static<typeof columns>

/** Returns some columns of one labeled set in file order. Throws if the set is absent or a row lacks one of them. */
export async function readRows<Name extends keyof Columns>(
  set: string,
  ...names: readonly Name[]
): Promise<Pick<Columns, Name>[]> {
  const schema = Type.Pick(columns, [...names])
  const lines = (await Bun.file(join(folder, set, 'data.jsonl')).text()).trimEnd().split('\n')
  return lines.map(line => {
    const row: Pick<Columns, Name> = JSON.parse(line)
    if (!Value.Check(schema, row)) throw new TypeError(`A row of ${set} lacks a column of ${names.join(', ')}.`)
    return row
  })
}
