/**
 * Detects trivial prompts: polite phrases, calculations, and questions with a one-fact or yes/no answer. Enhancing them
 * would only make the output longer. In languages that mark questions, a question without a word that requires more is
 * yes/no. English is decided by the first word, since many English questions have no verb (`any ideas for a
 * birthday?`).
 */
import questionWords from './trivial-questions.json'

/** Returns true if a prompt of a few lines is trivial. `language` is ISO 639-1. */
export function isTrivialPrompt(prompt: string, language: string): boolean {
  const text = prompt.trim().replace(/^[¿¡"'“«\s]+/, '')
  if (isCourtesy(text) || oneThing.some(form => form.test(text))) return true
  const asks = questions[language] ?? questions.en
  if (asks === undefined || isLong(text)) return false
  return (asks.fact.test(text) && !asks.more.test(text)) || isYesOrNo(text, language, asks)
}

type Questions = {
  /** Starts of questions about one fact. */
  readonly fact: RegExp
  /** Words anywhere that require more than a fact, or an explained choice. */
  readonly more: RegExp
  /** Question words, and words that turn a request into a question. */
  readonly open: RegExp
}

/** Returns true for more than one sentence or a long one, which require more than a word. */
function isLong(text: string): boolean {
  return (
    /(?:[!?。！？]|\.(?![\p{L}\p{N}]))\s*\S/u.test(text.replace(/\b(?:mr|mrs|ms|dr|st|vs|u\.s)\./gi, '')) ||
    text.split(/\s+/).length > maximumWords
  )
}

const maximumWords = 16

function isCourtesy(text: string): boolean {
  const isShort = text.split(/\s+/).length <= courtesyWords
  return (isShort && (greeting.test(text) || thanks.test(text))) || politeness.test(text)
}

/** A longer prompt that starts with a greeting continues with a request. */
const courtesyWords = 5

const { forms, languages } = questionWords
const greeting = opening(forms.greeting.join(''))
/** Thanks, including praise or a reason. */
const thanks = new RegExp(forms.thanks, 'iu')
/** Polite phrases of any length, and greetings in scripts without spaces. */
const politeness = new RegExp(forms.politeness, 'iu')

/**
 * Prompts whose output is one number, word, choice or sentence, in any language: calculations (each unit matches in one
 * way only, so that matching is linear), conversions, choices, look-ups of a word, current figures, and a form that the
 * client requested, which leaves no room for another.
 */
const oneThing = [
  ...forms.oneThing.map(form => new RegExp(form.replaceAll('@unit', forms.unit), 'iu')),
  within(forms.oneSentence),
]

function isYesOrNo(text: string, language: string, { open }: Questions): boolean {
  if (language === 'en' || questions[language] === undefined) return englishYesOrNo.test(text) && !open.test(text)
  return isAsked(text, language) && !open.test(text)
}

function isAsked(text: string, language: string): boolean {
  return /[?？؟]["'”»]?$/.test(text) || (unmarked[language]?.test(text) ?? false)
}

/** Questions without a question mark. */
const unmarked: Readonly<Record<string, RegExp>> = {
  zh: /吗[。]?$|是不是|有没有|能不能|可不可以|对不对/,
  ja: /(?:ですか|ますか|でしたか|ましたか|でしょうか|の)。?$/,
  ko: /(?:나요|까요|니까|가요|인가|있어|되나)\.?$/,
  hi: /^क्या\s/,
  ar: /^هل\s/,
  pl: /^czy\s/i,
  uk: /^чи\s/i,
}

const englishYesOrNo = new RegExp(forms.englishYesOrNo, 'iu')

/** Words at the start, words anywhere, or a pattern for scripts and forms that these do not fit. */
type WordTest = { readonly opening?: readonly string[]; readonly within?: string; readonly pattern?: string }
const wordTests: Readonly<Record<string, Readonly<Record<keyof Questions, WordTest>>>> = languages

const questions: Readonly<Record<string, Questions>> = Object.fromEntries(
  Object.entries(wordTests).map(([language, { fact, more, open }]) => [
    language,
    { fact: compiled(fact), more: compiled(more), open: compiled(open) },
  ]),
)

function compiled({ opening: first, within: anywhere, pattern }: WordTest): RegExp {
  if (first !== undefined) return opening(first.join(''))
  return anywhere === undefined ? new RegExp(pattern ?? '', 'i') : within(anywhere)
}

/** Matches one of the words at the start. */
function opening(alternatives: string): RegExp {
  return new RegExp(`^(?:${alternatives})(?![\\p{L}\\p{M}\\p{N}])`, 'iu')
}

/** Matches one of the words anywhere. */
export function within(alternatives: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{M}])(?:${alternatives})(?![\\p{L}\\p{M}])`, 'iu')
}
