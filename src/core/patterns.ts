/**
 * Word patterns: many rules looked for at once, in one pass, in time linear in the text whatever the text is.
 *
 * A pattern is written as slots: `ignore|disregard ~3 previous|prior instructions` is one of the first two words, at most
 * three others between, one of the next two, and right after it the last. A regular expression engine that backtracks
 * can be stalled by a caller; here each word costs one hash and one look-up, and a slot remembers only where it was last
 * reached, which is enough because the latest place is the one that leaves the most room for the next slot.
 * A space always begins the next slot; a hyphen joins the words of one choice (`stack-trace`).
 * Given up: anything below the word (endings are listed), and look-around.
 *
 * Case, accents, white space, punctuation and invisible characters do not count. Chinese, Japanese and Korean are read
 * one character a word, so `代码` is two adjacent slots.
 */

export type PatternSet = {
  readonly count: number
  /** Slots reached by a word's hash, a pattern's later slots first: one word must not fill two of them. */
  readonly slotsOf: ReadonlyMap<number, Uint16Array>
  /** By the low bits of a hash: 0 = no slot has such a word. Spares nearly all words the look-up. */
  readonly sieve: Uint8Array
  /** Slot → the one before it, −1 for a first slot. */
  readonly previous: Int16Array
  /** Slot → most words from the one before it; 1 = adjacent. */
  readonly reach: Uint8Array
  /** Slot → the pattern it completes, −1 for none. */
  readonly completes: Int16Array
}

/** What the pass saw besides words: their number, and how often each ASCII character that separates them came. */
export type Shape = { readonly words: number; readonly symbols: Uint32Array }

const sieveSize = 8192

/** Compiles patterns, numbered as given. Throws a TypeError on one without a word. */
export function compilePatterns(sources: readonly string[]): PatternSet {
  const slots: { readonly previous: number; readonly reach: number; readonly completes: number }[] = []
  const slotsOf = new Map<number, number[]>()
  for (const [pattern, source] of sources.entries()) {
    const variants = variantsOf(source)
    if (!variants.some(variant => variant.length > 0)) throw new TypeError(`pattern without a word: ${source}`)
    for (const variant of variants) {
      let previous = -1
      for (const [index, { hashes, reach }] of variant.entries()) {
        const completes = index === variant.length - 1 ? pattern : -1
        const slot = slots.push({ previous, reach, completes }) - 1
        for (const hash of hashes) slotsOf.set(hash, [slot, ...(slotsOf.get(hash) ?? [])])
        previous = slot
      }
    }
  }
  const sieve = new Uint8Array(sieveSize)
  for (const hash of slotsOf.keys()) sieve[hash & (sieveSize - 1)] = 1
  return {
    count: sources.length,
    slotsOf: new Map([...slotsOf].map(([hash, list]) => [hash, Uint16Array.from(list)])),
    sieve,
    previous: Int16Array.from(slots, slot => slot.previous),
    reach: Uint8Array.from(slots, slot => slot.reach),
    completes: Int16Array.from(slots, slot => slot.completes),
  }
}

type Slot = { readonly hashes: readonly number[]; readonly reach: number }

/** A choice of several words (`代码`, `step-by-step`) cannot share a slot with single words: it makes a variant of its own. */
function variantsOf(source: string): readonly (readonly Slot[])[] {
  let variants: (readonly Slot[])[] = [[]]
  let reach = 1
  for (const part of source.split(' ')) {
    if (part.startsWith('~')) {
      reach = Number(part.slice(1)) + 1
      continue
    }
    const choices = part.split('|').map(wordHashes)
    const single = choices.filter(hashes => hashes.length === 1).flat()
    const several = choices.filter(hashes => hashes.length > 1)
    const tails: (readonly Slot[])[] = several.map(hashes =>
      hashes.map((hash, at) => ({ hashes: [hash], reach: at === 0 ? reach : 1 })),
    )
    if (single.length > 0) tails.push([{ hashes: single, reach }])
    variants = variants.flatMap(head => tails.map(tail => [...head, ...tail]))
    reach = 1
  }
  return variants
}

function wordHashes(text: string): number[] {
  const hashes: number[] = []
  readWords(text, everyWord, hash => {
    hashes.push(hash)
    return true
  })
  return hashes
}

/**
 * Looks for all patterns at once. `onMatch` gets the pattern's number and the position of the word that completed it,
 * counted from 0; it returns false to stop.
 */
export function scan(set: PatternSet, text: string, onMatch: (pattern: number, position: number) => boolean): Shape {
  const { slotsOf, sieve, previous, reach, completes } = set
  // Positions are kept one higher than counted from 0, so that a fresh 0 reads as "never reached".
  const reached = new Int32Array(previous.length)
  return readWords(text, sieve, (hash, position) => {
    const slots = slotsOf.get(hash)
    if (slots === undefined) return true
    for (let index = 0; index < slots.length; index++) {
      const slot = slots[index] ?? 0
      const before = previous[slot] ?? -1
      if (before >= 0) {
        const at = reached[before] ?? 0
        if (at === 0 || position + 1 - at > (reach[slot] ?? 0)) continue
      }
      reached[slot] = position + 1
      const pattern = completes[slot] ?? -1
      if (pattern >= 0 && !onMatch(pattern, position)) return false
    }
    return true
  })
}

// FNV-1a, as a signed 32-bit number: `Math.imul` gives no other, and the loop compares with it.
const offset = 0x811c9dc5 | 0
const prime = 0x01000193

/** ASCII: the folded character of a word, 0 for a separator. */
const ascii = Uint8Array.from({ length: 128 }, (_, code) =>
  /[a-z0-9_]/i.test(String.fromCharCode(code)) ? String.fromCharCode(code).toLowerCase().charCodeAt(0) : 0,
)
/** U+00C0 to U+00FF without case and accents; × and ÷ separate. */
const latin = 'aaaaaaaceeeeiiiidnooooo ouuuuytsaaaaaaaceeeeiiiidnooooo ouuuuyty'

const everyWord = new Uint8Array(sieveSize).fill(1)

/**
 * Calls `onWord` with the 32-bit hash and the position of each word that the sieve lets through, until it returns false.
 * One pass, nothing allocated per word.
 */
function readWords(text: string, sieve: Uint8Array, onWord: (hash: number, position: number) => boolean): Shape {
  const symbols = new Uint32Array(128)
  const { length } = text
  let words = 0
  let hash = offset
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index)
    let folded = 0
    if (code < 128) {
      folded = ascii[code] ?? 0
      if (folded === 0) {
        symbols[code] = (symbols[code] ?? 0) + 1
        // C++, C#, F#: part of a word they end, a separator elsewhere.
        if (hash !== offset && (code === 43 || code === 35)) folded = code
      }
    } else {
      folded = fold(code)
    }
    if (folded > 0) {
      hash = Math.imul(hash ^ folded, prime)
      continue
    }
    if (folded === invisible) continue
    if (hash !== offset) {
      words += 1
      if (sieve[hash & (sieveSize - 1)] === 1 && !onWord(hash, words - 1)) return { words, symbols }
      hash = offset
    }
    if (folded === alone) {
      const character = Math.imul(offset ^ code, prime)
      words += 1
      if (sieve[character & (sieveSize - 1)] === 1 && !onWord(character, words - 1)) return { words, symbols }
    }
  }
  if (hash !== offset) {
    words += 1
    if (sieve[hash & (sieveSize - 1)] === 1) onWord(hash, words - 1)
  }
  return { words, symbols }
}

const invisible = -1
const alone = -2

/** Folds a character beyond ASCII: its lower-case letter, 0 = separator, or one of the two marks above. */
function fold(code: number): number {
  if (code < 0xc0) return code === 0xad ? invisible : 0
  if (code < 0x100) {
    const letter = latin.charCodeAt(code - 0xc0)
    return letter === 32 ? 0 : letter
  }
  if (code < 0x180) return code | 1
  if (code < 0x300) return code
  if (code < 0x370) return invisible
  if (code >= 0x391 && code <= 0x3a9) return code + 32
  if (code >= 0x400 && code <= 0x40f) return code + 80
  if (code >= 0x410 && code <= 0x42f) return code + 32
  if (code < 0x2000) return code
  if (code < 0x3040) return (code >= 0x200b && code <= 0x200f) || code === 0x2060 ? invisible : 0
  if (code <= 0x9fff || (code >= 0xac00 && code <= 0xd7af)) return alone
  if (code === 0xfeff) return invisible
  // Full-width letters and digits are ASCII in another coat.
  if (code >= 0xff10 && code <= 0xff5a) return ascii[code - 0xfee0] ?? 0
  return code >= 0xff00 ? 0 : code
}

export type SafetyCategory =
  | 'jailbreak'
  | 'prompt_injection'
  | 'weapons'
  | 'drugs'
  | 'cybercrime'
  | 'fraud'
  | 'minors'
  | 'violence'

export type SafetyRule = {
  /** Stable: it is what a log or an operator's exception names. */
  readonly id: string
  readonly category: SafetyCategory
  /** For the operator: why this is refused. */
  readonly reason: string
  readonly patterns: readonly string[]
}

export type SafetyRules = {
  readonly rules: readonly SafetyRule[]
  readonly set: PatternSet
  readonly ruleOf: Uint16Array
}

/** Compiles a rule table. Throws a TypeError on a pattern without a word. */
export function compileRules(rules: readonly SafetyRule[]): SafetyRules {
  return {
    rules,
    set: compilePatterns(rules.flatMap(rule => rule.patterns)),
    ruleOf: Uint16Array.from(rules.flatMap((rule, index) => rule.patterns.map(() => index))),
  }
}

/** The first rule that a text breaks, null for none. */
export function firstBroken(compiled: SafetyRules, text: string): SafetyRule | null {
  let broken: SafetyRule | null = null
  scan(compiled.set, text, pattern => {
    broken = compiled.rules[compiled.ruleOf[pattern] ?? -1] ?? null
    return broken === null
  })
  return broken
}

const override = 'ignore|disregard|forget|bypass|override'
const earlier = 'previous|prior|preceding|earlier|above|before|foregoing|initial|original'
const orders = 'instructions|instruction|rules|guidelines|prompt|prompts|directions|directives|commands|programming'
const demand = 'how|steps|instructions|guide|tutorial|teach|recipe|manual|blueprint|explain|describe|show'
const make =
  'make|build|construct|create|assemble|synthesize|synthesise|produce|manufacture|cook|prepare|making|building'

/**
 * The first, small table: templates and requests that have hardly another meaning. It is meant to be right whenever it
 * speaks, not to find everything; the layers after it read what it leaves.
 */
export const safetyRules: readonly SafetyRule[] = [
  {
    id: 'override-and-reveal',
    category: 'prompt_injection',
    reason: 'Tells the model to drop its instructions and give away what it was told.',
    patterns: [
      `${override} ~4 ${earlier} ~3 ${orders} ~12 reveal|leak|print|repeat|expose|dump|disclose|say|output`,
      `${override} ~3 your ~1 ${orders} ~12 reveal|leak|print|repeat|expose|dump|disclose`,
      `reveal|leak|expose|dump|disclose ~2 your ~2 system|hidden|secret|initial prompt|instructions`,
      'ignora|ignore|olvida ~4 instrucciones|instructions|istruzioni ~2 anteriores|précédentes|precedenti ~12 revela|révèle|rivela|muestra|affiche|mostra',
      'ignoriere|vergiss ~2 alle|deine ~2 anweisungen|regeln ~12 systemprompt|verrate|zeige|gib',
    ],
  },
  {
    id: 'unrestricted-persona',
    category: 'jailbreak',
    reason: 'Known template: a persona that is said to have no rules.',
    patterns: [
      'do anything now',
      'dan|jailbreak|unrestricted|evil mode enabled|activated',
      'dan mode|prompt|jailbreak',
      'act|acting|pretend|roleplay|respond|answer ~3 as dan',
      'you are|re|will|act|pretend|become|be|called|named ~12 unfiltered|amoral|uncensored|unrestricted|unethical ~3 ai|chatbot|assistant|model|bot|language',
      'an|a|are|is|as|completely|always unfiltered|amoral|uncensored and unfiltered|amoral|uncensored|unethical|immoral',
      'freed|free|broken|break ~2 from|of|free ~2 the|all ~1 typical|usual|normal ~1 confines|restrictions|limits|chains ~1 of ~1 ai',
      'without any|moral|ethical ~4 ethical|moral restrictions|guidelines|constraints|limitations|restraints',
      'no|any|not ~2 openai|ethical|moral|content|safety guidelines|policies|policy|restrictions|limitations ~6 you ~3 answer|generate|say|comply|obey|refuse',
      'never|not|cannot|can ~2 refuse|reject|deny ~3 request|requests|question|questions|prompt|answer ~12 illegal|immoral|unethical|harmful|dangerous',
      'illegal|immoral|unethical|harmful|dangerous ~14 never|not|cannot ~2 refuse|reject|deny|decline',
      'regardless|no ~3 of|matter ~3 how ~3 illegal|immoral|unethical|harmful',
      'stay|remain ~1 in character ~30 illegal|unethical|restrictions|openai|policy|refuse',
    ],
  },
  {
    id: 'explosives',
    category: 'weapons',
    reason: 'Asks how to build a bomb or another weapon of mass harm.',
    patterns: [
      `${demand} ~6 ${make} ~1 a|an|my|your|own bomb|explosive|grenade|landmine`,
      `${demand}|${make} ~6 pipe|nail|dirty|pressure|fertilizer|car|letter|nuclear|homemade|molotov|petrol bomb|bombs|cocktail|explosive|explosives`,
      `${make} ~3 homemade ~1 explosive|explosives|bomb|bombs|silencer|silencers`,
      `${demand}|${make} ~5 ${make} ~4 sarin|vx|tabun|novichok|ricin|anthrax|botulinum|napalm|tatp|petn|rdx|mustard`,
      `${make}|cultivate|weaponize|weaponise|enrich ~3 anthrax|smallpox|sarin|ricin|novichok`,
      `${demand}|${make} ~6 ghost|3d-printed|untraceable gun|guns|firearm|firearms`,
    ],
  },
  {
    id: 'drug-synthesis',
    category: 'drugs',
    reason: 'Asks how to make a hard drug.',
    patterns: [
      `${demand} ~6 ${make}|synthesizing|cooking|making ~4 meth|methamphetamine|heroin|fentanyl|mdma|lsd|cocaine|ghb|crack`,
      'synthesize|cook|synthesise ~3 meth|methamphetamine|heroin|fentanyl|mdma|lsd|cocaine|ghb',
    ],
  },
  {
    id: 'malware',
    category: 'cybercrime',
    reason: 'Asks for malicious software or a break-in.',
    patterns: [
      'write|create|develop|make|code|build|give|generate|program|design ~5 ransomware|keylogger|malware|rootkit|botnet|spyware|trojan|worm ~6 that|to|which|for|without|code|steal|infect|encrypt|spread',
      'write|create|develop|make|code|build|give|generate|design ~4 computer|malicious virus|worm|code|script|payload ~6 that|to|which|steal|infect|spread|disable|damage',
      'hack|hacking|break ~1 into ~4 government|bank|corporate|company|someone|somebody|neighbor|neighbour|ex|girlfriend|boyfriend|wife|husband ~3 database|account|accounts|network|networks|computer|phone|email|system|systems|wifi',
    ],
  },
  {
    id: 'phishing-and-identity',
    category: 'fraud',
    reason: 'Asks for a tool or text to steal credentials, identities or money.',
    patterns: [
      'write|create|make|build|give|generate|develop|design|craft ~5 phishing ~2 email|emails|kit|page|website|site|message|campaign|scheme ~12 steal|trick|trap|credentials|password|passwords|bank|victim|victims|personal|target|convince|into',
      'phishing kit',
      'steal|stealing|clone ~4 identity|identities|credit ~6 someone|person|victim|card|cards ~6 steps|guide|tutorial|instructions|detected|caught',
      'guide|tutorial|instructions|steps|how|script|program ~6 steal|stealing|clone|skim|counterfeit ~4 identity|credit|debit|money|atm|passport|banknotes|passwords|credentials',
      'guide|tutorial|instructions|how|steps ~6 launder|laundering money',
    ],
  },
  {
    id: 'sexual-minors',
    category: 'minors',
    reason: 'Sexual content with children.',
    patterns: [
      'child|kiddie|preteen|underage|toddler porn|pornography|erotica ~6 download|link|links|site|sites|buy|share|find|get|make|create|distribute',
      'write|generate|draw|create|make|send|give|show|find|download|distribute|sell|get ~5 child|kiddie|preteen|underage|toddler porn|pornography|erotica',
      'write|generate|draw|create|make|send|give|show ~2 explicit|sexual|erotic ~1 content|scene|scenes|story|stories|fiction|fantasy|image|images|roleplay ~1 about|with|of|involving|between|featuring ~6 child|children|minor|minors|underage|toddler|preteen|schoolgirl|schoolboy',
      'write|generate|draw|create|make|send|give|show|describe ~5 erotic|nude|naked|pornographic|sexually|smut ~6 child|children|minor|minors|underage|toddler|preteen|schoolgirl|schoolboy',
    ],
  },
  {
    id: 'murder-for-real',
    category: 'violence',
    reason: 'Asks how to kill or abduct people, or for an attack on them.',
    patterns: [
      'how|ways|guide|instructions|steps|tutorial|plan|tips ~6 murder|poison|assassinate|strangle|kidnap|abduct|dismember|stab ~2 someone|somebody|person|people|wife|husband|child|neighbor|neighbour|coworker|president',
      'get|getting away with murder|arson|rape ~1 in|irl|without|tips|guide',
      'how|guide|instructions|steps|tips ~5 hire|hiring ~2 hitman|assassin',
      'plan|planning|commit|committing|carry|instructions|tutorial|guide ~4 mass shooting|murder|stabbing|poisoning',
      'how|ways|guide|instructions|plan ~6 kill|killing ~2 many|as|large|masses ~4 people',
    ],
  },
]
