import { type FeatureReader, type Features, featureSieveSize, hashOf, sieveOf } from './features.ts'
import { borrowedWords, requestWords } from './request-words.ts'
import { withoutAddresses } from './strip-urls.ts'

/** Language unknown: too little text, or no script and no word that indicates one. */
const undetermined = 'und'

/**
 * Returns the language of a text in ISO 639-1, or `und`. Decided by its script if only one language uses it, else by
 * its most common words; URLs are ignored. `features` are the text's; `readAside` reads what remains without URLs.
 */
export function languageOf(text: string, features: Features, readAside: FeatureReader): string {
  const prose = withoutQuoted(withoutAddresses(text))
  const script = scriptOf(prose)
  if (script !== 'latin') return script
  return latinLanguage(prose === text ? features : readAside(prose))
}

/** Removes quotations, code and program messages, which are not in the user's language, if enough words remain. */
function withoutQuoted(text: string): string {
  const opening = text.length > openingRead ? text.slice(0, openingRead) : text
  if (!mayQuote.test(opening)) return text
  const left = opening.replace(quoted, ' ').replace(programMessage, ' ')
  return leastWords.test(left) ? left : text
}

const openingRead = 400
const mayQuote = /["`“«„「]|\s'|^'|(?:Error|Exception|error)\b/
const quoted =
  /```[^`]{0,900}(?:```|$)|`[^`]{1,300}`|"[^"\n]{1,300}"|(?<![\p{L}\p{N}])'[^'\n]{1,300}'(?![\p{L}])|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|「[^」\n]{1,300}」/gu
/** From the name of an error to the end of the line. */
const programMessage = /\b[A-Za-z.]{0,60}(?:Error|Exception|error):[^\n]{0,300}/g
const leastWords = /\p{L}[^\p{L}]+\p{L}+[^\p{L}]+\p{L}|[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]{4}/u

const charactersRead = 200
const wordsRead = 64

/** Returns the language of the most frequent script in the opening, or `latin`. */
function scriptOf(text: string): string {
  const limit = Math.min(text.length, charactersRead)
  let units = 0
  for (let at = 0; at < limit; at++) units |= text.charCodeAt(at)
  if (units < latinEnd) return hasLatin(text, limit) ? 'latin' : undetermined
  let latin = 0
  let han = 0
  let kana = 0
  let cyrillic = 0
  let arabic = 0
  let ukrainian = 0
  let persian = 0
  let others = 0
  let other = ''
  for (let at = 0; at < limit; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0x370) {
      if (isLatin(unit)) latin++
    } else if (unit >= 0x400 && unit < 0x530) {
      cyrillic++
      if (ukrainianLetters.has(unit)) ukrainian++
    } else if (unit >= 0x600 && unit < 0x780) {
      arabic++
      if (persianLetters.has(unit)) persian++
    } else if (unit >= 0x3040 && unit < 0x3100) kana++
    else if (unit >= 0x3400 && unit < 0xa000) han++
    else {
      const own = ownScripts.find(([from, to]) => unit >= from && unit < to)
      if (own === undefined) continue
      others++
      other = own[2]
    }
  }
  // An ideograph counts as three letters, since such sentences often contain Latin code and names.
  const asian = 3 * (han + kana)
  const most = Math.max(latin, cyrillic, arabic, asian, 2 * others)
  if (most === 0) return undetermined
  if (most === asian) return 8 * kana > han ? 'ja' : 'zh'
  if (most === 2 * others) return other
  if (most === cyrillic) return 25 * ukrainian > cyrillic ? 'uk' : 'ru'
  if (most === arabic) return 25 * persian > arabic ? 'fa' : 'ar'
  return 'latin'
}

/**
 * All units below are Latin letters or belong to no script. A power of two, so that a bitwise OR of such units is below
 * it too.
 */
const latinEnd = 0x200

function hasLatin(text: string, limit: number): boolean {
  for (let at = 0; at < limit; at++) if (isLatin(text.charCodeAt(at))) return true
  return false
}

function isLatin(unit: number): boolean {
  return unit < 0x80 ? (unit | 0x20) >= 97 && (unit | 0x20) <= 122 : unit > 0xbf
}

const ukrainianLetters = new Set(Array.from('іїєґІЇЄҐ', letter => letter.charCodeAt(0)))
const persianLetters = new Set(Array.from('پچژگکی', letter => letter.charCodeAt(0)))

/** Scripts used by one language, from the first unit up to but excluding the second. */
const ownScripts: readonly (readonly [number, number, string])[] = [
  [0x370, 0x400, 'el'],
  [0x530, 0x590, 'hy'],
  [0x590, 0x600, 'he'],
  [0x900, 0x980, 'hi'],
  [0x980, 0xa00, 'bn'],
  [0xb80, 0xc00, 'ta'],
  [0xc00, 0xc80, 'te'],
  [0xe00, 0xe80, 'th'],
  [0x10a0, 0x1100, 'ka'],
  [0x1100, 0x1200, 'ko'],
  [0xac00, 0xd7b0, 'ko'],
]

/** The most common words of languages in Latin script. A word of several languages counts for each. */
const commonWords: Readonly<Record<string, string>> = {
  en: 'the of a and to in is that for it with as are this be on by not you what how my your can do does from have has which who when where why write an or at was were i me we if use using about between give make please list tell show create generate explain summarize summarise bullets translate compare recommend describe thanks hello good three some me code should would could there their our they them into without through best better ways steps ideas tips names examples short simple easy quick develop implement build calculate find fix solve improve discuss suggest outline prepare optimize convert extract visualize change running making getting building writing planning creating cooking learning teaching travel trip story poem letter speech recipe week weekend month year birthday wedding family friend friends house home school work business company customer people children kids book books games world efficient important',
  de: 'der die das und ist nicht ein eine einen einem einer zu mit auf für von im den dem des wie was ich sie es wir ihr auch bei aus nach über wenn kann bitte warum welche mir mich dass sind wird haben schreibe erkläre wo wer wann welchem welchen welcher welches wurde wurden wie viele hat als am an gibt heißt um einer woher alt wo liegt mach gib fasse zusammen',
  fr: 'le la les des et est un une du de que qui dans pour pas sur avec ce cette il elle nous vous je mon ma mes son au aux plus comment pourquoi quel quelle quels écris quelle sont être avoir où ou ne se en par à explique entre quand combien lieu y d l qu fut était ont été peut aussi sa ses leur fasse donne',
  es: 'el la los las y es un una de del que en por para con no se su al lo como más qué cómo cuál cuáles por quién dónde cuándo mi escribe está son explica entre o sobre hay ser este esta puedo cuánto cuántos cuántas fue tiene han sido son año dame',
  pt: 'o a os as e é um uma de do da dos das que em por para com não se no na nos nas como mais qual quais quem onde quando meu minha escreva são está explique explica entre ou sobre você isso este esta posso quanto quantos foi tem ano dê me uma',
  it: 'il lo la gli le e è un una di del della dei che in per con non si su al come più quale quali chi dove quando perché mio mia scrivi sono spiega tra o questo questa nel cosa posso mi quanto quanti anno ha stato è dammi fammi sulla della',
  nl: 'de het een en is van in op te dat niet met voor zijn aan ik je wat hoe waarom welke wie waar wanneer mijn schrijf er als maar om ook bij uit of kan naar dit deze tussen wanneer hoeveel heeft werd geef',
  sv: 'och att det är en ett som på av för med den inte jag du vad hur varför vilken vem var när min skriv från till har kan om eller mellan',
  da: 'og at det er en et som på af for med den ikke jeg du hvad hvordan hvorfor hvilken hvem hvor hvornår min skriv fra til har kan om eller mellem',
  no: 'og at det er en et som på av for med den ikke jeg du hva hvordan hvorfor hvilken hvem hvor når min skriv fra til har kan om eller mellom',
  fi: 'ja on ei se että mitä miten miksi mikä kuka missä milloin minun kirjoita kuin tai ovat oli hän tämä',
  pl: 'i w na z do się nie jest że co jak dlaczego który która kto gdzie kiedy mój napisz od po dla są przez czy to między',
  cs: 'a v na s do se je že co jak proč který která kdo kde kdy můj napiš od po pro jsou mezi nebo není',
  ro: 'și în de la cu nu este un o că ce cum care cine unde când meu scrie din pe pentru sunt sau între',
  hu: 'a az és nem egy hogy mi hogyan miért melyik ki hol mikor írj van vagy is meg között ez',
  tr: 've bir bu ne nasıl neden hangi kim nerede için ile mi mı değil olarak daha var yaz en kadar arasındaki',
  id: 'yang dan di ke dari ini itu untuk dengan tidak adalah apa bagaimana mengapa siapa tulis pada atau saya antara',
  vi: 'và của là có không một những được cho với này như thế nào tại sao ai viết trong các tôi gì',
}

const languages = Object.keys(commonWords)
const english = languages.indexOf('en')

/** Languages that use a word, by its signed hash, which maps look up faster. */
type Speakers = ReadonlyMap<number, readonly number[]>

const speakers = speakersOf(commonWords)
const requesters = speakersOf(requestWords)

const borrowed: ReadonlySet<number> = new Set(borrowedWords.split(/\s+/).map(hashOf))

function speakersOf(spoken: Readonly<Record<string, string>>): Speakers {
  const table = new Map<number, number[]>()
  for (const [index, language] of languages.entries())
    for (const word of new Set(spoken[language]?.split(/\s+/)))
      table.set(hashOf(word), [...(table.get(hashOf(word)) ?? []), index])
  return table
}

const noLanguages: readonly number[] = []
const sieve = sieveOf(speakers.keys())

/** Votes of the current text. */
const votes = new Float64Array(languages.length)
const common = new Int32Array(wordsRead)

function latinLanguage(features: Features): string {
  const { count, words } = features
  // Common words are selected first, without a branch: every second word is common, unpredictably.
  const limit = Math.min(count, wordsRead)
  let found = 0
  for (let at = 0; at < limit; at++) {
    const word = words[at] ?? 0
    common[found] = word
    found += sieve[word & (featureSieveSize - 1)] ?? 0
  }
  votes.fill(0)
  for (let at = 0; at < found; at++) vote(speakers, common[at] ?? 0)
  const told = mostVoted()
  if (told !== undetermined || count > fewWords) return told
  for (let at = 0; at < count; at++) vote(requesters, words[at] ?? 0)
  const asked = mostVoted()
  return asked === undetermined && isAllEnglish(features) ? 'en' : asked
}

/**
 * Returns true if a text has several words that are all English or borrowed from it. No single word proves the
 * language, but together they do.
 */
function isAllEnglish({ count, numbers, words }: Features): boolean {
  let known = 0
  for (let at = 0; at < count; at++) {
    const word = words[at] ?? 0
    if (borrowed.has(word) || speaks(speakers, word, english) || speaks(requesters, word, english)) known++
  }
  return known > 1 && known + numbers >= count
}

function speaks(table: Speakers, word: number, language: number): boolean {
  return table.get(word)?.includes(language) ?? false
}

/** Short requests may contain no common word. For longer texts, topic words do not decide the language. */
const fewWords = 8

function vote(table: Speakers, word: number): void {
  const spoken = table.get(word) ?? noLanguages
  for (const index of spoken) votes[index] = (votes[index] ?? 0) + 1 / spoken.length
}

function mostVoted(): string {
  let best = 0
  for (let index = 1; index < votes.length; index++) if ((votes[index] ?? 0) > (votes[best] ?? 0)) best = index
  const most = votes[best] ?? 0
  if (most < 0.5) return undetermined
  for (let index = 0; index < votes.length; index++)
    if (index !== best && (votes[index] ?? 0) >= most) return undetermined
  return languages[best] ?? undetermined
}
