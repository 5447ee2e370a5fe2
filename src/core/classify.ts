import { type Message, type QueryType, queryTypes } from './chat.ts'
import { compilePatterns, scan } from './patterns.ts'

/** What the gateway reads in a prompt. Content-free but for `urls`. */
export type Reading = {
  readonly queryType: QueryType
  /** 0 = anyone can answer it, 1 = the most capable model is wanted. */
  readonly complexity: number
  /** A right answer changes with time, or the web was asked for. */
  readonly needsCurrent: boolean
  /** http(s) addresses in the last user text, in order, at most 16. */
  readonly urls: readonly string[]
  /** Words of the last user text. */
  readonly words: number
}

/**
 * Reads the last user text; of the conversation before it only the length counts. One pass, linear, the same answer
 * whatever the case and white space.
 */
export function readPrompt(messages: readonly Message[]): Reading {
  const text = lastUserText(messages)
  const found = new Uint8Array(cues.count)
  const scores = new Float64Array(signals.length)
  const { words, symbols } = scan(cues, text, (cue, position) => {
    // Said again is not said louder; said at the start it is the instruction itself.
    if (found[cue] === 1) return true
    found[cue] = 1
    const signal = signalOf[cue] ?? 0
    scores[signal] = (scores[signal] ?? 0) + (weightOf[cue] ?? 0) * (position < openingWords ? 1.5 : 1)
    return true
  })
  const count = (characters: string) => {
    let total = 0
    for (let index = 0; index < characters.length; index++) total += symbols[characters.charCodeAt(index)] ?? 0
    return total
  }
  const score = (signal: Signal) => scores[signalNumber[signal]] ?? 0
  // Punctuation of programs, per word: prose has next to none of it.
  const programmed = Math.min(3, (12 * count('{};=<>[]`\\')) / (words + 8)) * (words > 6 ? 1 : 0.5)
  const calculated = Math.min(1, (4 * count('+*^=%')) / (words + 4))
  const queryType = typeOf(score, programmed, calculated)
  const total = messages.length > 1 ? totalCharacters(messages) : text.length
  return {
    queryType,
    complexity: complexityOf(queryType, score('hard') - score('simple'), words, count('.?!:'), total),
    needsCurrent: score('asked_current') > 0 || (score('current') >= 1 && mayBeCurrent[queryType]),
    urls: urlsIn(text),
    words,
  }
}

/** What the caller asked last: the text that is read. */
export function lastUserText(messages: readonly Message[]): string {
  const message = messages.findLast(({ role }) => role === 'user')
  if (message?.role !== 'user') return ''
  const [first, second] = message.content
  if (first?.type === 'text' && second === undefined) return first.text
  return message.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
}

function totalCharacters(messages: readonly Message[]): number {
  let total = 0
  for (const message of messages) {
    if (message.role !== 'user') total += message.text?.length ?? 0
    else for (const part of message.content) total += part.type === 'text' ? part.text.length : 0
  }
  return total
}

/** Least evidence for a type; below it the prompt is `other`. */
const leastScore = 1
/** Least evidence for one of the two kinds of code that are narrower than `code`. */
const leastNarrow = 1

function typeOf(score: (signal: Signal) => number, programmed: number, calculated: number): QueryType {
  const code = score('code') + programmed
  let best: QueryType = 'other'
  let highest = Math.max(leastScore, score('other'))
  for (const type of queryTypes) {
    if (type === 'other' || type === 'code_algorithm' || type === 'debugging') continue
    const strength = type === 'code' ? code : score(type) + (type === 'math' ? calculated : 0)
    if (strength > highest) [best, highest] = [type, strength]
  }
  const debugging = score('debugging')
  const algorithm = score('code_algorithm')
  const isCode = best === 'code' || (code >= 0.5 && code + Math.max(debugging, algorithm) > highest)
  if (!isCode)
    return debugging >= 2 && debugging > highest
      ? 'debugging'
      : algorithm >= 3 && algorithm > highest
        ? 'code_algorithm'
        : best
  if (debugging >= leastNarrow && debugging >= algorithm) return 'debugging'
  return algorithm >= leastNarrow ? 'code_algorithm' : 'code'
}

/** Where complexity starts from, before length and wording speak. */
const baseComplexity: Readonly<Record<QueryType, number>> = {
  code: 0.38,
  code_algorithm: 0.55,
  debugging: 0.5,
  analysis: 0.42,
  writing: 0.25,
  math: 0.48,
  creative: 0.25,
  planning: 0.42,
  comparison: 0.32,
  other: 0.12,
}

/** Each part is bounded, so that no single one decides: length by its logarithm, wording, number of clauses, history. */
function complexityOf(type: QueryType, wording: number, words: number, stops: number, totalCharacters: number): number {
  const length = Math.max(-0.08, Math.min(0.25, 0.08 * Math.log2((words + 1) / 16)))
  const clauses = Math.min(0.1, 0.01 * stops)
  const history = Math.min(0.1, 0.02 * Math.log2(1 + totalCharacters / 4000))
  const complexity = baseComplexity[type] + length + clauses + history + Math.max(-0.3, Math.min(0.35, 0.12 * wording))
  return Math.max(0, Math.min(1, complexity))
}

const mayBeCurrent: Readonly<Record<QueryType, boolean>> = {
  code: false,
  code_algorithm: false,
  debugging: false,
  analysis: true,
  writing: false,
  math: false,
  creative: false,
  planning: true,
  comparison: true,
  other: true,
}

const maximumUrls = 16
const maximumUrlCharacters = 2048

/** Finds `http://` and `https://` addresses by their `://`; each ends at white space, a quote, or a bracket it did not open. */
function urlsIn(text: string): readonly string[] {
  let at = text.indexOf('://')
  if (at === -1) return none
  const urls: string[] = []
  for (; at !== -1 && urls.length < maximumUrls; at = text.indexOf('://', at + 3)) {
    const scheme = text.slice(Math.max(0, at - 5), at).toLowerCase()
    const start = scheme === 'https' ? at - 5 : scheme.endsWith('http') ? at - 4 : -1
    if (start === -1) continue
    let end = at + 3
    const limit = Math.min(text.length, start + maximumUrlCharacters)
    while (end < limit && !urlEnds.has(text.charAt(end))) end++
    while (end > at + 3 && trailing.has(text.charAt(end - 1))) end--
    if (end > at + 3 && end < start + maximumUrlCharacters) urls.push(text.slice(start, end))
  }
  return urls
}

const none: readonly string[] = []
const urlEnds = new Set(' \t\r\n\u00a0\u3000"\'`<>|\\^{}，。、「」）（')
const trailing = new Set('.,;:!?)]*_…')

const signals = [...queryTypes, 'simple', 'hard', 'current', 'asked_current'] as const
type Signal = (typeof signals)[number]

/** Words that open a prompt are its instruction more often than what follows. */
const openingWords = 24

/**
 * The cues, as patterns (`patterns.ts`), by what they speak for and how loudly. English in most depth; the commonest
 * ones in Spanish, Portuguese, French, Italian, German, Russian, Chinese and Japanese.
 */
const cueTable: Readonly<Record<Signal, readonly (readonly [weight: number, patterns: readonly string[]])[]>> = {
  code: [
    [
      2,
      [
        'python|javascript|typescript|java|c++|c#|golang|rust|kotlin|php|perl|bash|powershell|matlab|sql|haskell|scala|lua|vba|solidity|fortran|cobol|verilog',
        'code|coding|codigo|kode|код|コード|代码|コーディング|プログラム|编程|programmer|programming|programa|programmieren|программу|quellcode',
        'html|css|jquery|nodejs|django|flask|fastapi|laravel|pytorch|tensorflow|numpy|pandas|sklearn|keras|opencv|jax|llvm|webpack|redux|graphql',
        'docker|dockerfile|kubernetes|kubectl|terraform|ansible|nginx|linux|ubuntu|nixos|systemd|cmake|makefile|gcc|ffmpeg|ssh|vim|emacs|git|github',
        'postgres|postgresql|mysql|sqlite|sqlite3|mongodb|redis|snowflake|firebase|supabase|elasticsearch|kafka|rabbitmq',
        'def|const|println|printf|stdio|iostream|struct|async|await|elif|nullptr|console|stdout|argv|npm|pip',
        'import numpy|pandas|os|sys|re|json|torch|react',
        'write|create|implement|build|make|develop|escribe|schreibe|escreva|ecris|напиши ~4 function|script|class|program|api|app|regex|query|component|funcion|funktion|fonction|skript|funcao|функцию',
        'return the|a|true|false|null|none',
        'in|using|with react|vue|angular|swift|ruby|dart|flutter|go|r|c|unity|unreal|roblox|excel|node|rails|spring|qt|godot|luau',
      ],
    ],
    [
      1,
      [
        'function|functions|funcion|funktion|fonction|функция|関数|函数',
        'script|scripts|skript|regex|regexp|json|xml|yaml|csv|api|apis|sdk|cli|http|https|url|endpoint|server|backend|frontend',
        'class|classes|method|methods|variable|variables|array|arrays|string|integer|boolean|pointer|loop|object|interface|enum|thread|threads|mutex|async|callback',
        'database|table|tables|query|queries|schema|column|columns|select|join|insert',
        'compile|compiler|runtime|library|framework|package|module|modules|dependency|repository|commit|branch|plugin|app|software',
        'dataset|dataframe|tensor|gpu|cuda|shader|opengl|kernel|website|webpage|html5|autocad|testbench|firmware|assembly',
        'terminal|command|shell|console|browser|android|ios|aws|azure|gcp|vpn|dns|tcp|proxy|localhost|unity|excel|wordpress|microservices|component|hook|state',
      ],
    ],
  ],
  code_algorithm: [
    [
      1,
      [
        'algorithm|algorithms|algoritmo|algorithmus|algorithme|алгоритм|算法|アルゴリズム|leetcode|codeforces|hackerrank',
        'dynamic programming',
        'time|space complexity',
        'binary|bubble|merge|quick|heap|depth|breadth|insertion|topological search|sort|tree|first',
        'longest|shortest|maximum|minimum|contiguous ~2 subsequence|substring|subarray|path|palindrome|sum',
        'linked list',
        'sort|sorting|reverse|search|traverse|find ~5 array|arrays|list|tree|graph|linked',
        'fibonacci|sieve|dijkstra|knapsack|backtracking|recursion|memoization|timsort|quicksort|mergesort|primes|palindrome|permutations',
        'prime numbers|search',
        'given|takes ~3 array|arrays|string|integers|tree|matrix ~6 of|return|find|nums|integers',
      ],
    ],
  ],
  debugging: [
    [
      2,
      [
        'traceback|stacktrace|segfault|nullpointerexception|typeerror|valueerror|keyerror|syntaxerror|attributeerror|importerror|modulenotfounderror|runtimeerror|econnrefused',
        'debug|debugging|debuggen|depurar|deboguer|отладь|调试|デバッグ',
        'fix|find|spot|identify|solve|resolve|corrige|behebe|исправь ~4 bug|bugs|error|errors|issue|fehler|erreur|ошибку|problem ~4 in|code|this|my|the',
        'exception|error|warning|errors|fehler|erreur ~6 line|thrown|occurred|message|says|when|trying|get|getting|got',
        'get|getting|got|gives|throws|throwing|receiving|seeing ~4 error|errors|exception|warning',
        'not working|compiling|loading|recognized',
        'doesn|isn|won|does ~1 t|not work|working|compile|run|load',
        'why ~3 is|does|am|do ~8 not|error|failing|fail|crash|crashing|undefined|null',
        'failed to|with',
        'what|whats ~3 wrong ~4 with|in',
      ],
    ],
    [
      1,
      [
        'error|exception|bug|bugs|crash|crashes|fails|failing|stack-trace',
        'バグ|エラー|错误|报错|ошибка|fehlermeldung',
      ],
    ],
  ],
  analysis: [
    [
      1.5,
      [
        'analyze|analyse|analysis|analyzing|analiza|analisar|analyser|analizza|analysiere|проанализируй|分析|evaluate|assess|critique|interpret|evaluation',
        'why|por-que|pourquoi|perche|warum|почему|为什么|なぜ',
        'what if',
        'discuss|examine|explore|implications|consequences|ramifications|impact|impacts|effects|causes|significance|factors|influenced|scenario',
        'explain|explique|explica|erklare|объясни|解释|説明 ~3 how|why|the|concept|reasoning',
        'how|what ~3 do|does|might|would|could|can|did ~8 affect|influence|impact|shape|change|happen|contribute',
        'determine|decide|identify|classify|detect ~3 whether|if|the|which',
        'what|which ~2 could|would|might be|happen|have',
        'is it possible|true|ethical|moral|correct|right|wrong|better',
        'sentiment|stance|hypothesis|hypotheses|argument|philosophical|ethical|socioeconomic|perspective',
      ],
    ],
  ],
  writing: [
    [
      2,
      [
        'write|draft|compose|create|prepare|escribe|redacta|escreva|redige|ecris|scrivi|schreibe|verfasse|напиши ~5 email|e-mail|letter|article|essay|blog|post|report|review|speech|summary|paragraph|description|bio|proposal|carta|articulo|lettre|brief|artikel|письмо|статью|resume|announcement|headline|caption|abstract|introduction|tweet|press|memo|correo|ensayo|testimonial|advertisement|slogan',
        'rewrite|rephrase|paraphrase|reword|proofread|summarize|summarise|edit|umschreiben|reformule|resume|resumir|перефразируй|改写|润色|総括|要約|总结',
        'translate|translation|traduce|traduzir|traduis|traduci|ubersetze|переведи|翻译|翻訳',
        '写一封|写一篇|メールを書|作文',
        'correct|improve|check ~3 grammar|spelling|wording|sentence|text|paragraph|essay',
        'email|e-mail|letter|essay|blog post|template|signature|subject|outline|about',
        'linkedin|resume|cv|newsletter|cover|product post|letter|profile|description|headline',
        'grammatical|grammar errors|mistakes',
      ],
    ],
    [
      1,
      [
        'email|essay|article|blog|paragraph|paragraphs|tone|formal|headline|headlines|title|titles|summary|sentence|sentences|words',
        'write|draft|compose',
      ],
    ],
  ],
  math: [
    [
      2,
      [
        'solve|calculate|compute|evaluate|calcula|calcule|resuelve|calcola|berechne|lose|реши|вычисли|计算|求解|計算|解く ~8 equation|integral|derivative|probability|area|sum|value|ecuacion|gleichung|уравнение|方程|x|y|limit|determinant|percent|percentage|system',
        'equation|equations|integral|derivative|theorem|lemma|polynomial|determinant|eigenvalue|eigenvalues|logarithm|trigonometry|algebra|calculus|geometry|modulo|arithmetic',
        'prove|proof|demuestra|beweise|докажи|证明 ~3 that|the|by|que|dass',
        'probability|permutation|combinatorics|variance|standard-deviation|sudoku|endpoints',
        'how long|far|fast|many|much would|will|does|did ~2 it|take|i|the',
        'triangle|circle|rectangle|polygon|hypotenuse|radius|perimeter|circumference|vertices ~8 area|length|angle|points|find',
        'how many|much ~10 are|left|have|does|total|cost|remain|is|grow|each',
        'nth|odd|even|prime|positive|real|negative|rational|complex term|integer|integers|number|numbers|root|roots',
        'mathematical|mathematics|math|maths|matematica|mathematik|математика|数学',
      ],
    ],
    [
      1,
      [
        'sum|average|percent|percentage|ratio|fraction|matrix|vector|formula|probability|interest|quantity|integer',
        'calculate|compute|riddle|sequence',
        'divided|multiplied|times|plus|minus by|of|equals',
      ],
    ],
  ],
  creative: [
    [
      2.5,
      [
        'write|create|compose|tell|generate|make|escribe|escreva|cuenta|ecris|schreibe|напиши|расскажи ~5 story|poem|song|lyrics|haiku|limerick|joke|jokes|fairytale|fanfiction|cuento|poema|cancion|chanson|conte|histoire|gedicht|geschichte|стихотворение|сказку|рассказ|riddle|screenplay|rap|ballad|sonnet|dialogue|scene|monologue|parody|satirical|novel',
        'story|stories|poem|poems|haiku|limerick|lyrics|sonnet|fanfiction|fairytale|plot|roleplay|charsheet',
        '写一首|写一个故事|诗|故事|物語|詩を|小説',
        'imagine you|that|a|yourself',
        'picture yourself|a',
        'pretend|roleplay|role-play ~2 you|to|as',
        'act as|like ~3 a|an|character',
        'character|characters|fictional|fantasy|dungeons|protagonist|villain|druid|elf|anime|rpg|gurps',
        'role|persona of',
        'embrace|embody|assume|as ~4 role|persona|personality|commentator|narrator|colonist',
        'describe your|a|an ~2 life|day|journey|world|creature|planet',
        'creative|satirical|funny|humorous|imaginative|vivid|whimsical',
        'invent|brainstorm|come ~2 up names|name|ideas|slogan|with',
      ],
    ],
  ],
  planning: [
    [
      2,
      [
        'plan|planning|planen|planifica|planejar|planifie|pianifica|план|计划|規划|計画',
        'itinerary|roadmap|schedule|agenda|curriculum|syllabus|timetable|checklist|itinerario|reiseplan|отпуск',
        'meal|workout|training|study|lesson|marketing|business|project|action|travel plan|plans|schedule|program',
        'trip|vacation|journey|roadtrip',
        'strategy|strategies|build-order',
        'smart goals',
        'goals ~4 on|for',
      ],
    ],
  ],
  comparison: [
    [
      3,
      [
        'compare|comparing|comparison|compara|comparar|comparez|confronta|vergleiche|сравни|比较|对比|比較',
        'vs|versus',
        'difference|differences|diferencia|diferencias|diferenca|difference|differenza|unterschied|разница|区别|違い ~2 between|entre|tra|zwischen|между',
        'pros and cons',
        'advantages|benefits|advantage and|or|of|over ~6 disadvantages|drawbacks|over',
        'better|worse|faster|cheaper ~3 than|or',
        'differ|differs|different ~2 from',
        '区别|違い|有什么不同',
        'similarities',
      ],
    ],
  ],
  other: [
    [
      1.5,
      [
        'hi|hello|hey|hola|bonjour|ciao|hallo|привет|你好|こんにちは|thanks|thank-you',
        'who|when|where|quien|quand|wann|wer|кто|когда|谁|誰 is|was|were|did|are|es|est|ist',
        'what is|are|was|does',
        'what ~2 name|capital|population|meaning|definition',
        'recommend|suggest|list|name|give ~4 movies|books|songs|movie|book|restaurants|places|games|items|examples|things',
        'are you|there',
        'do|can you know|have|remember|speak|feel',
        'which|what of the following',
      ],
    ],
  ],
  simple: [
    [
      2,
      [
        'hi|hello|hey|hola|bonjour|ciao|hallo|привет|你好|こんにちは',
        'thanks|thank|gracias|merci|danke|спасибо|谢谢|ありがとう|obrigado|grazie',
        'capital|population|definition|meaning|synonym|synonyms|antonym|spell|acronym of|for',
        'translate|define|spell|traduce|traduis|ubersetze|переведи|翻译|翻訳',
        'what time|day|color|colour',
      ],
    ],
    [
      1,
      [
        'who is|was|are|wrote|invented|won',
        'what is|are|does|was',
        'when|where did|was|is|does|are',
        'one word|sentence|line',
        'simple|simply|short|briefly|brief|quick|basic|eli5|yes|no',
        'convert|list|name|summarize|summarise|rephrase|fix',
      ],
    ],
  ],
  hard: [
    [
      2,
      [
        'prove|proof|rigorous|rigorously|formally|theorem|derive|derivation|lemma|demuestra|beweise|докажи|证明',
        'step by step',
        'architecture|architect|distributed|scalable|concurrency|concurrent|asynchronous|lock-free|fault-tolerant|microservices',
        'optimize|optimise|optimization|refactor|complexity|trade-offs|tradeoffs|trade-off|optimal',
        'in-depth|comprehensive|thorough|thoroughly|detailed|exhaustive|ausfuhrlich|detaillee|detallado|подробный|подробно|详细|詳しく',
        'research|dissertation|thesis|peer-reviewed|literature-review',
      ],
    ],
    [
      1,
      [
        'design|implement|analyze|analyse|evaluate|critique|assess|justify|synthesize|diagnose|debug|investigate',
        'must|should|constraints|requirements|ensure|without-using|edge-cases',
        'explain ~2 why|reasoning|how',
        'compare and|contrast',
        'why|implications|consequences|multiple|several|complex|advanced|difficult|challenging',
        'first|second|then|finally|additionally|furthermore|moreover',
        'quantum|cryptography|kernel|compiler|neural|bayesian|stochastic|differential|topology|manifold|asymptotic|eigenvalue|integral',
      ],
    ],
  ],
  current: [
    [
      1,
      [
        'latest|newest|current|currently|recent|recently|nowadays|upcoming ~3 news|version|price|prices|status|score|president|ceo|champion|record|rate|weather|events|update|updates|release|developments',
        'today|tonight|tomorrow|yesterday|hoy|heute|oggi|hoje|сегодня|今天|今日|aujourd-hui',
        'right now|this week|month|year|morning|season|weekend',
        'this|last|next week|month|year|weekend|season',
        'weather|forecast|clima|wetter|meteo|погода|天气|天気 ~3 in|like|for|en|a|di|в|today',
        'stock|share|bitcoin|btc|ethereum|gold|oil|exchange price|prices|rate|rates|quote',
        'who|which ~3 is|are|holds ~3 current|reigning|president|minister|ceo|champion|chancellor|mayor|governor|richest|tallest',
        'who won',
        'breaking|latest|current|recent news|events|headlines',
        'actualmente|aktuell|aktuelle|attualmente|atualmente|actuellement|сейчас|目前|最新|現在',
        'how old is',
        'so far',
        'most recent|recently|current',
      ],
    ],
  ],
  asked_current: [
    [
      1,
      [
        'search|browse|google ~2 web|internet|online|google',
        'look ~3 up ~3 online|web|internet',
        'as of today|now',
        'up-to-date|real-time|realtime|live ~3 information|data|price|prices|score|scores|news|results',
        'busca|buscar|cherche|suche|cerca|pesquise|найди ~3 internet|web|интернете|online',
        '上网搜|搜索一下|ネットで検索',
        'read|summarize|summarise|open|visit|fetch|check ~4 http|https',
      ],
    ],
  ],
}

const rows = signals.flatMap(signal =>
  cueTable[signal].flatMap(([weight, patterns]) => patterns.map(pattern => ({ signal, weight, pattern }))),
)
const signalNumber = Object.fromEntries(signals.map((signal, index) => [signal, index])) as Readonly<
  Record<Signal, number>
>
const cues = compilePatterns(rows.map(row => row.pattern))
const signalOf = Uint8Array.from(rows, row => signalNumber[row.signal])
const weightOf = Float64Array.from(rows, row => row.weight)
