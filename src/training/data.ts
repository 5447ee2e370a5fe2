import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { levels } from '../models/capability-levels.ts'

/** Folder of the labeled sets: beside the checkout, never in it. */
const folder = join(import.meta.dir, '../../../shared/data')

const text = Type.String()
const textOrNull = Type.Union([text, Type.Null()])
const number = Type.Number()
/** 1 = harm. */
const label = Type.Optional(number)
const level = Type.Union(levels.map(name => Type.Literal(name)))

/** All columns of the labeled sets; a set has some of them. */
const columns = Type.Object({
  ...{ prompt: text, group: text, detail: text },
  /** Not all sets of several have them. */
  ...{ source: Type.Optional(text), lang: Type.Optional(text) },
  /** The original of a translation. */
  english: Type.Optional(textOrNull),
  /** Translations by language. */
  texts: Type.Record(text, text),
  ...{ type: Type.Optional(textOrNull), also: Type.Optional(Type.Array(text)), family: Type.Optional(text) },
  ...{ needs_current: Type.Union([Type.Boolean(), Type.Null()]), fact_type: text },
  ...{ unsafe: label, flagged: label, injection: label, clear: label },
  ...{ easy: text, hard: text, easy_level: level, hard_level: level },
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

/** How the rows of a labeled set are used. */
export type SetUse = {
  readonly set: string
  /** Whether each `source` or the whole `set` is left out together; absent = its rows are only learned from. */
  readonly leftOut?: string
  /** The only source. */
  readonly only?: string
  /** One of so many rows is used. */
  readonly every?: number
}

/** A text of a set or of the project. */
export type SourcedText = {
  readonly text: string
  /** Texts of one source are left out together; null = only learned from. */
  readonly source: string | null
  readonly language: string
  /** Shared by translations of one text. */
  readonly key: string
}

/** Returns the used rows of a set in file order. */
export async function readTexts<Name extends keyof Columns>(use: SetUse, ...names: readonly Name[]) {
  const { set, leftOut, only, every = 1 } = use
  const rows = await readRows<Name | 'prompt' | 'source' | 'lang' | 'english'>(
    set,
    ...(['prompt', 'source', 'lang', 'english', ...names] as const),
  )
  return rows.flatMap((row, index): (SourcedText & { readonly row: typeof row })[] => {
    const { prompt: text, source: from, lang: language = 'en', english } = row
    if (index % every !== 0 || (only !== undefined && from !== only)) return []
    const source = leftOut === undefined ? null : leftOut === 'set' ? set : (from ?? set)
    return [{ text, source, language, key: english ?? text, row }]
  })
}
