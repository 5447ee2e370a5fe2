/** Values for simulated arguments: what a model would take from the prompt for a member of this name. */

/** Longer prompts are not read further. */
const mostCharacters = 8_000
const mostQuery = 200

/** Kinds of members by the words of their name; the first match counts. */
const kinds: readonly (readonly [RegExp, (prompt: string) => readonly (string | undefined)[]])[] = [
  [/^(url|uri|link|href|website)$/, prompt => [/https?:\/\/[^\s"'<>)\]]+[^\s"'<>)\].,;:!?]/.exec(prompt)?.[0]]],
  [/^(e?mail|recipient)$/, prompt => [/[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}/.exec(prompt)?.[0]]],
  [/^(path|file|filename|filepath|directory|dir|folder)$/, prompt => [pathIn(prompt)]],
  [/^(date|day|when)$/, prompt => [/\b\d{4}-\d\d-\d\d\b/.exec(prompt)?.[0]]],
  [
    /^(command|cmd|code|sql|expression|formula|script)$/,
    prompt => [codeIn(prompt), calculationIn(prompt), quoteIn(prompt)],
  ],
  [/^(city|location|place|town|country|destination|region|address|where)$/, prompt => [placeIn(prompt)]],
  [/^(origin|source|from)$/, prompt => [/\bfrom (\p{Lu}[\p{L}'-]+)/u.exec(prompt)?.[1]]],
  [/^(name|title|person|user|customer|author|company)$/, prompt => [quoteIn(prompt), nameIn(prompt)]],
  [
    /^(query|q|question|search|keywords?|term|topic|prompt|text|message|input|content|body|description|task|instructions?|subject|request)$/,
    prompt => [quoteIn(prompt), prompt.slice(0, mostQuery).trim()],
  ],
]

/** Returns texts for a member of this name, best first; empty if the prompt has none. */
export function textsFor(name: string, given: string): string[] {
  const prompt = given.slice(0, mostCharacters).trim()
  if (prompt === '') return []
  const words = nameWordsOf(name)
  const found: (string | undefined)[] = [saidOf(words, prompt)]
  for (const [kind, pick] of kinds)
    if (words.some(word => kind.test(word)) || kind.test(words.join(''))) {
      found.push(...pick(prompt))
      break
    }
  return found.flatMap(text => (text === undefined || text === '' ? [] : [text]))
}

/** Returns the numbers of the prompt, the one beside the member's name first. */
export function numbersFor(name: string, given: string): number[] {
  const prompt = given.slice(0, mostCharacters)
  const numbers = [...prompt.matchAll(/(?<![\w.,-])-?\d{1,12}(?:\.\d{1,6})?(?![\w.,]\d|\w)/g)]
  const words = nameWordsOf(name).map(word => word.replace(/s$/, ''))
  const isBeside = ({ 0: digits, index }: RegExpMatchArray) => {
    const around = prompt.slice(Math.max(0, (index ?? 0) - 24), (index ?? 0) + digits.length + 24).toLowerCase()
    return words.some(word => word.length > 2 && around.includes(word))
  }
  return [...numbers.filter(isBeside), ...numbers.filter(one => !isBeside(one))].slice(0, 8).map(one => Number(one[0]))
}

/** Returns the options in the order of the prompt; options that it does not mention follow unchanged. */
export function namedFirst(options: readonly unknown[], given: string): unknown[] {
  const prompt = given.slice(0, mostCharacters).toLowerCase()
  const place = (option: unknown) => {
    const at = typeof option === 'string' && option.length > 1 ? prompt.indexOf(option.toLowerCase()) : -1
    return at === -1 ? Number.POSITIVE_INFINITY : at
  }
  return options
    .map((option, index) => ({ option, index, at: place(option) }))
    .sort((one, other) => (one.at === other.at ? one.index - other.index : one.at - other.at))
    .map(({ option }) => option)
}

/** Splits a name into words: `maxFileSize` and `max_file_size` have the same three. */
export function nameWordsOf(name: string): string[] {
  return name
    .slice(0, 100)
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\d]+/u)
    .filter(word => word !== '')
}

/** `the unit is celsius`, `unit: celsius`, `unit=celsius`. */
function saidOf(words: readonly string[], prompt: string): string | undefined {
  if (words.length === 0 || !words.every(word => /^[\p{L}\d]+$/u.test(word))) return undefined
  const said = new RegExp(`\\b${words.join('[ _-]?')}(?: is |: ?| ?= ?)["“'\`]?([^\\s"”'\`,;]{1,80})`, 'iu').exec(
    prompt,
  )?.[1]
  return said?.replace(/[.!?]+$/, '')
}

const quoteIn = (prompt: string) =>
  /"([^"\n]{1,200})"|“([^”\n]{1,200})”/
    .exec(prompt)
    ?.slice(1)
    .find(text => text !== undefined)
const codeIn = (prompt: string) =>
  /```\w*\n([^`]{1,2000})```|`([^`\n]{1,200})`/
    .exec(prompt)
    ?.slice(1)
    .find(text => text !== undefined)
    ?.trim()
const calculationIn = (prompt: string) => /\d[\d.]*(?: ?[-+*/^%] ?\(?\d[\d.]*\)?){1,10}/.exec(prompt)?.[0]

function pathIn(prompt: string): string | undefined {
  const text = prompt.replace(/https?:\/\/\S+/g, ' ')
  return (
    /(?:^|[\s"'`(])((?:~|\.{1,2})?(?:\/[\w.-]{1,60}){1,12}|[\w.-]{1,60}(?:\/[\w.-]{1,60}){1,12}|[\w-]{1,60}\.[a-z]\w{0,4})(?=$|[\s"'`),.;:?!])/.exec(
      text,
    )?.[1] ?? ''
  ).replace(/\.$/, '')
}

const capitalized = "\\p{Lu}[\\p{L}'’-]{1,30}(?:(?: (?:de|del|la|of|am|an|der|upon) | )\\p{Lu}[\\p{L}'’-]{1,30}){0,3}"
const afterPlaceWord = new RegExp(`\\b(?:in|at|for|to|near|of|around|visit|visiting|from) (${capitalized})`, 'gu')
const insideSentence = new RegExp(`[\\p{Ll}\\d,] (${capitalized})`, 'gu')

const notNames =
  /^(?:JSON|XML|HTML|CSV|YAML|SQL|API|URL|UTC|GMT|ISO|PDF|Markdown|Celsius|Fahrenheit|Kelvin|English|French|German|Spanish|Italian|Portuguese|Dutch|Chinese|Japanese|Korean|Russian|January|February|March|April|May|June|July|August|September|October|November|December|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)\b/

const placeIn = (prompt: string) => firstName(afterPlaceWord, prompt) ?? nameIn(prompt)
/** A capital at the beginning of a sentence does not indicate a name. */
const nameIn = (prompt: string) => firstName(insideSentence, prompt)

function firstName(pattern: RegExp, prompt: string): string | undefined {
  for (const [, name = ''] of prompt.matchAll(pattern)) if (!notNames.test(name)) return name
  return undefined
}
