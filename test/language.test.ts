/**
 * Rules of language for everything that people read: comments, test titles, messages, labels, documentation; and one
 * meaning for each exported name.
 */
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { extractProse, type Prose } from './harness/prose.ts'

const root = resolve(import.meta.dir, '..')

const read = (path: string) => readFileSync(join(root, path), 'utf8')

const filesUnder = (folder: string, pattern: RegExp) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => pattern.test(name))
    .map(name => join(folder, name))
    .sort()

/** Words that the project does not use, with their replacement. */
const refused: readonly (readonly [RegExp, string])[] = [
  [/\b(whoever|whosoever|nobody|somebody|anybody|everybody|he who|those who|that which)\b/i, 'name the actor'],
  [/(^|[.:;,] )what (is|was|has)\b/i, 'name the thing'],
  [/\b(anew|thence|whence|lest|asunder|foretell|foretold|foresee|foreseen|foresight)\b/i, 'plain words'],
  [/\b(herein|perchance|oneself|unheard|unwell|ailing|given up|under way)\b/i, 'plain words'],
  [/\bdear(er|est)?\b/i, 'expensive'],
  [/\b(as good as|at home|at hand|had its fill|(comes|came|come) to nothing|by itself|let go of)\b/i, 'plain words'],
  [/\b(gives? way|takes? nothing|is gone|of late|no matter|as it was|be had|is meant|holds? for)\b/i, 'plain words'],
  [/\b(is|are|was|were) (told|said|asked of|heard of|taken for)\b/i, 'name who reports what to whom'],
  [/(?<!there )\bis none\b/i, 'is not'],
  [/(?<!stand )\balone\b/i, 'only'],
  [/\b(anything|nothing) but\b/i, 'only'],
  [
    /\b(seats?|roll call|nudges?|lessons?|errands?|strangers?|siblings?|doors?|lanes?|houses?)\b/i,
    'a term of the field',
  ],
  [/\b(the living(?! instances| ones)|books?|(?<!hugging )faces?|walls?(?!.clock))\b/i, 'a term of the field'],
  [/\b(requests?|tokens|seconds?|times|once|twice|runs?|exports?|\d+|N) an? (minute|day|second)\b/i, 'per minute'],
  [/\b(\d+|many|few|two|three|fifty|hundred|requests) at a time\b/i, 'concurrent'],
  [/\b(catalogues?|learnt|behaviours?|colours?|cancelled|e-mails?|licences?)\b/i, 'American spelling'],
]

/** Names that say less than the term of the thing that they hold, and `getText` for `getText`; JSON Schema has `anyOf`. */
const refusedName =
  /^(ask|reading|seats?|catalogue|standings?|faces?|foresight|one)$|(?<!^(index|lastIndex|value|any|one|all))Of$/

/** Folders whose strings are data: word lists, examples, templates, generated outputs. */
const dataStrings: readonly string[] = ['src/text/', 'src/web/untrusted-content.ts', 'src/training/', 'src/simulator/']

/** Returns the names that a file exports, types included. */
const exportedNames = (path: string) =>
  [...read(path).matchAll(exported)].flatMap(([, name]) => (name === undefined ? [] : [name]))

const exported = /^export (?:async )?(?:abstract )?(?:function\*?|const|let|class|type|interface|enum) ([\w$]+)/gm

/** SQL and Lua in a literal. */
const isProgram = (text: string) =>
  /\b(select|insert into|update|delete from|create|returning|order by|redis\.call|local)\b[\s\S]*(=|\(|\bfrom\b|\bset\b)/.test(
    text,
  )

const isMessage = (text: string) => /[a-z]+ [a-z]+/i.test(text) && !isProgram(text)

const isChecked = (path: string, { kind, text }: Prose) =>
  kind !== 'name' &&
  (kind !== 'string' ||
    (path.startsWith('src/') && isMessage(text) && !dataStrings.some(prefix => path.startsWith(prefix))))

/** Code in backquotes is a fixed name. */
const withoutCode = (text: string) => text.replace(/```[\s\S]*?```|`[^`\n]*`/g, '')

function refusedIn(text: string): readonly string[] {
  return refused.flatMap(([pattern, instead]) => {
    const match = pattern.exec(withoutCode(text))
    return match === null ? [] : [`"${match[0].trim()}": write ${instead}`]
  })
}

const sources = ['src', 'test'].flatMap(folder => filesUnder(folder, /\.tsx?$/))
const prose = new Map(sources.map(path => [path, extractProse(path, read(path))]))

describe('exported names', () => {
  // `src/client` repeats the names of the API, whose schemas have them too.
  const files = filesUnder('src', /\.tsx?$/).filter(path => !path.startsWith('src/client/'))

  test('have one meaning each', () => {
    const owners = Map.groupBy(
      files.flatMap(path => exportedNames(path).map(name => ({ name, path }))),
      ({ name }) => name,
    )
    const several = [...owners].filter(([, list]) => new Set(list.map(({ path }) => path)).size > 1)
    expect(several.map(([name]) => name)).toEqual([])
  })
})

describe('language', () => {
  test('refuses words in comments, titles, messages and labels', () => {
    const wrong = [...prose].flatMap(([path, items]) =>
      items
        .filter(item => isChecked(path, item))
        .flatMap(item => refusedIn(item.text).map(words => `${path}:${item.line} ${item.kind} ${words}`)),
    )
    expect(wrong).toEqual([])
  })

  test('refuses names of variables, functions and types', () => {
    const wrong = [...prose].flatMap(([path, items]) =>
      items
        .filter(({ kind, text }) => kind === 'name' && refusedName.test(text))
        .map(({ text, line }) => `${path}:${line} ${text}`),
    )
    expect(wrong).toEqual([])
  })

  test('refuses words in the documentation', () => {
    const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...filesUnder('docs', /\.md$/)]
    const wrong = pages.flatMap(path => {
      const kept = read(path).replace(/```[\s\S]*?```/g, block => block.replace(/[^\n]/g, ''))
      return kept.split('\n').flatMap((line, index) => refusedIn(line).map(words => `${path}:${index + 1} ${words}`))
    })
    expect(wrong).toEqual([])
  })

  test('requires a unit, a verb and at most 25 words in test titles', () => {
    // `needs.ts` declares tests under the titles that it receives.
    const form = /^[\w .,()/:[\]@*%…`'&+-]+?: (?!(is|are|of|that|what|and|says)\b)\S/
    const wrong = [...prose].flatMap(([path, items]) =>
      items
        .filter(
          ({ kind, text }) => kind === 'title' && text !== '… …' && !(form.test(text) && text.split(' ').length <= 25),
        )
        .map(({ text, line }) => `${path}:${line} ${text}`),
    )
    expect(wrong).toEqual([])
  })
})
