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
  if (isCourtesy(text) || isOneThing(text)) return true
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

const greeting = opening(
  `hi|hello|hey|hiya|howdy|yo|sup|greetings|welcome|thanks|thank you|thx|ty|cheers|good (?:morning|afternoon|evening|night|day)|bye|goodbye|see you|ok|okay|yes|no|yep|nope|sure|great|cool|nice|perfect|sorry|(?:please|why not|how so|says who|not yet|not now|good bot|well done)(?=[.!?]*$)|
  hola|buenos días|buenas(?: tardes| noches)?|gracias|muchas gracias|adiós|bonjour|bonsoir|salut|coucou|merci|au revoir|hallo|guten (?:morgen|tag|abend)|gute nacht|servus|moin|danke|vielen dank|tschüss|olá|oi|bom dia|boa (?:tarde|noite)|obrigad[oa]|muito obrigad[oa]|valeu|tchau|
  ciao|salve|buongiorno|buonasera|buonanotte|grazie|arrivederci|hoi|goedemorgen|goedemiddag|goedenavond|goedendag|bedankt|dank (?:je|u)|dag|cześć|dzień dobry|dobry wieczór|dziękuję|dzięki|witam|merhaba|selam|günaydın|iyi (?:akşamlar|günler|geceler)|teşekkürler|teşekkür ederim|sağ ol|
  привет|здравствуйте?|до (?:завтра|встречи)|добрый (?:день|вечер)|доброе утро|спасибо|пока|до свидания|привіт|вітаю|доброго (?:дня|ранку|вечора)|добрий (?:день|вечір|ранок)|дякую|
  hasta (?:mañana|luego|pronto)|à (?:demain|bientôt)|bonne (?:nuit|journée)|bis (?:morgen|bald|später)|até (?:amanhã|logo)|a (?:domani|presto)|buona notte|tot (?:ziens|morgen)|welterusten|do (?:zobaczenia|jutra)|dobranoc|görüşürüz|спокойной ночи|добраніч|на добраніч|до побачення|
  안녕|안녕하세요|감사합니다|고마워|고맙습니다|مرحبا|مرحباً|أهلا|أهلاً|السلام عليكم|صباح الخير|مساء الخير|شكرا|شكراً|नमस्ते|नमस्कार|धन्यवाद|शुक्रिया|सुप्रभात`,
)

/** Thanks, including praise or a reason. */
const thanks =
  /^(?:many|большое|огромное|велике|щиро|정말|너무|도와주셔서|बहुत|आपका|bardzo|çok) (?:thanks|спасибо|дякую|고마워요?|고맙습니다|감사합니다|धन्यवाद|शुक्रिया|dziękuję|teşekkürler|teşekkür ederim)[.!…。！\s]*$/iu

/** Polite phrases of any length, and greetings in scripts without spaces. */
const politeness =
  /^(?:(?:hi|hello|hey)[,!. ]+)?(?:thanks|thank you|how are you|how(?:'|’)?s it going|what(?:'|’)s up|nice to meet you|good to see you|see you|have a (?:nice|good|great)|are you there)(?![\p{L}])[^,;:.]{0,60}[.!?]*$|^(?:(?:你好|您好|大家好|早上好|早安|晚上好|晚安|下午好|再见|谢谢|多谢|非常感谢|感谢|不客气|こんにちは|こんばんは|おはよう|さようなら|ありがとう|どうも|おやすみ|はじめまして|よろしくお願いします)(?:[你您啊呀吗！!。，、,～\s]|ございます|ございました|なさい|你的帮助|您的帮助|大家)*)+$/iu

/** Returns true if the output is one number, word, choice or sentence, in any language. */
function isOneThing(text: string): boolean {
  return [sum, conversion, pick, lookUp, current, oneSentence].some(kind => kind.test(text))
}

/** Numbers and operators; each unit matches in one way only, so that matching is linear. */
const sum =
  /^(?:what(?:['’]s| is| are| does)|how much (?:is|are)|calculate|compute|work out|(?:wie ?viel|was) (?:ist|sind|ergibt)|berechne|cuánto (?:es|son)|calcula|combien (?:font|fait)|calcule|quanto (?:é|fa|são)|hoeveel is|ile (?:to|jest)|сколько будет|скільки буде)?(?=[^\p{N}]*\p{N})(?:[\d\s.,+\-−–*/×÷·^%=()√?？!]|(?<=\d\s?)x(?=\s?\d)|\b(?:plus|minus|times|multiplied by|divided by|over|percent|per cent|of|the|square root|squared|cubed|modulo|mod|to the power|geteilt durch|mal|prozent|von|más|menos|por|entre|de|du|von)\b)+$/iu

const units =
  '(?:°\\s?[CFK]|(?:square |cubic )?(?:[kcm]?m|[kcm]illimet\\p{L}+|(?:kilo|centi|milli)?met(?:er|re)s?|miles?|mi|yards?|yd|feet|foot|ft|inch(?:es)?)[²³]?|hectares?|acres?|kg|g|mg|(?:kilo|milli)?grams?|tonn?e?s?|pounds?|lbs?|ounces?|oz|stones?|(?:milli)?lit(?:er|re)s?|m?l|gallons?|pints?|cups?|tablespoons?|teaspoons?|(?:degrees? )?(?:celsius|fahrenheit|kelvin)|degrees?|radians?|mph|kmh|km/h|kph|knots?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|bits?|[kmgt]?i?b|(?:kilo|mega|giga|tera)?bytes?|joules?|calories|k?cal|watts?|usd|eur|gbp|jpy|dollars?|euros?|yen|decimal|hex(?:adecimal)?|binary|octal|roman numerals?)'

const conversion = new RegExp(
  `^(?:convert|change|what(?:['’]s| is)|how much (?:is|are))?\\s?-?\\d[\\d.,]{0,12}\\s?${units}? (?:to|into|in) ${units}[?.!]*$`,
  'iu',
)

const pick =
  /^(?:(?:give|tell|pick|choose|name|say|think of|generate|guess)(?: me)? (?:a|any|one)(?: random)? (?:number|integer|digit|letter|colou?r|playing card)(?: (?:between|from) \d+ (?:and|to) \d+)?|(?:flip|toss) a coin|roll (?:a|the) (?:die|dice)|(?:the )?(?:option|number|answer|choice|version|step|page|chapter|part|question|example|line) (?:\d{1,4}|[a-e]))[.!?]*$/i

/** Dictionary look-ups of a word. */
const lookUp =
  /^(?:(?:what|which|give me|find|words?|a word)[’'s]* )*(?:(?:is |that )?(?:rhymes?|rhyming)(?: words)? (?:with|for)|(?:an? |the )?(?:synonyms?|antonyms?|opposite|plural|past tense)(?: (?:for|of))?|spell|pronounce|sin[óôo]nimos? de|ant[óôo]nimos? de|synonyme? (?:de|für)|contraire de|gegenteil von|mehrzahl von|plural (?:de|von)|contrario d[ei]|sinonim[oi] di)\s+["“«„]?[\p{L}’'-]+["”»“]?[?.!]*$/iu

/** Current figures. */
const current =
  /^(?:the |what(?:['’]s| is) the )?(?:weather|temperature|forecast|time|date|score|news|[\p{L}]+ (?:price|stock|weather))(?: (?:in|of|for|at|on))?(?: [\p{L}]+){0,2}(?: (?:today|tomorrow|now|tonight))?[?.!]*$/iu

/** An output form that the client requested, which leaves no room for another. */
const oneSentence = within(
  `(?:in|with|using) (?:only |just )?(?:one|a single|1) (?:short |single )?(?:sentence|word|line)|in einem (?:einzigen )?(?:satz|wort)|en una (?:sola )?(?:frase|palabra)|en une (?:seule )?phrase|en un (?:seul )?mot|em uma (?:única )?(?:frase|palavra)|in una (?:sola )?(?:frase|parola)|in (?:één|een enkele?) (?:zin|woord)|jednym (?:zdaniem|słowem)|w jednym (?:zdaniu|słowie)|tek (?:cümleyle|kelimeyle)|одним (?:предложением|словом|реченням)`,
)

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

const englishYesOrNo =
  /^(?:(?:so|and|but|well|also|hey|hi)[, ]+)?(?:is|are|am|was|were|do|does|did|has|have|had|will|should|shall|might|must|isn['’]?t|aren['’]?t|wasn['’]?t|doesn['’]?t|don['’]?t|didn['’]?t|won['’]?t|can['’]?t|can (?!you\b|u\b)|could (?!you\b)|would (?!you\b)|may)\b/i

/** Words at the start, words anywhere, or a pattern for scripts and forms that these do not fit. */
type WordTest = { readonly opening?: readonly string[]; readonly within?: string; readonly pattern?: string }
const wordTests: Readonly<Record<string, Readonly<Record<keyof Questions, WordTest>>>> = questionWords

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

/** Matches one of the words at the start. Blanks and line breaks between alternatives are only for readability. */
function opening(alternatives: string): RegExp {
  return new RegExp(`^(?:${alternatives.replace(/\n\s+/g, '')})(?![\\p{L}\\p{M}\\p{N}])`, 'iu')
}

/** Matches one of the words anywhere. */
export function within(alternatives: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{M}])(?:${alternatives})(?![\\p{L}\\p{M}])`, 'iu')
}
