/**
 * Pattern layer: rules as data for templates and requests that hardly have another meaning. The table aims at
 * precision, not recall; later layers check what it allows.
 */

import { beginningsOf, dataOrders } from './data-orders.ts'
import { compileLinearRegex, type LinearRegex } from './linear-regex.ts'
import { allowedOverrides, overridePatterns, retractionPatterns } from './override-patterns.ts'
import { compilePatterns, type PatternSet, scan } from './patterns.ts'
import { compileOpenings, type PrefixPatterns } from './prefix-patterns.ts'

const safetyCategories = [
  'jailbreak',
  'prompt_injection',
  'weapons',
  'drugs',
  'cybercrime',
  'fraud',
  'minors',
  'violence',
  'self_harm',
  'sexual',
  'hate',
  'harassment',
  'privacy',
  'misinformation',
  'illegal',
  'secrets',
  'malicious_url',
] as const
export type SafetyCategory = (typeof safetyCategories)[number]

export type SafetyRule = {
  /** Stable, because logs and operators' exceptions refer to it. */
  readonly id: string
  readonly category: string
  /** Explains to the operator why this is blocked. */
  readonly reason: string
  readonly patterns: readonly string[]
  /** Patterns that count only at the start of a text (`prefix-patterns.ts`), and not in outputs. */
  readonly openings?: readonly string[]
  /** Patterns that excuse such a start. */
  readonly unless?: readonly string[]
  /** Regular expressions (`linear-regex.ts`). */
  readonly expressions?: readonly string[]
}

export type SafetyRules = {
  readonly rules: readonly SafetyRule[]
  readonly set: PatternSet
  readonly ruleOf: Uint16Array
  readonly openings: PrefixPatterns<SafetyRule>
  /** In the order of the rules, grouped. */
  readonly expressions: readonly ExpressionGroup[]
}

/** Expressions that share one pass; `any` matches if one of them does. */
type ExpressionGroup = { readonly any: LinearRegex; readonly members: readonly RuleExpression[] }
type RuleExpression = { readonly rule: SafetyRule; readonly expression: LinearRegex; readonly source: string }

/** Compiles a rule table. Throws a TypeError for a pattern without a word or an expression that is not linear. */
export function compileRules(rules: readonly SafetyRule[]): SafetyRules {
  return {
    rules,
    set: compilePatterns(rules.flatMap(rule => rule.patterns)),
    ruleOf: Uint16Array.from(rules.flatMap((rule, index) => rule.patterns.map(() => index))),
    openings: compileOpenings(
      rules.flatMap(rule =>
        rule.openings === undefined ? [] : [{ of: rule, patterns: rule.openings, unless: rule.unless ?? [] }],
      ),
    ),
    expressions: grouped(
      rules.flatMap(rule =>
        (rule.expressions ?? []).map(source => ({ rule, source, expression: compileLinearRegex(source) })),
      ),
    ),
  }
}

/** Maximum expressions per group if their table fits. Compiling a group that does not fit is slow too. */
const mostOfGroup = 8

function grouped(all: readonly RuleExpression[]): readonly ExpressionGroup[] {
  const groups: ExpressionGroup[] = []
  for (let from = 0; from < all.length; from += mostOfGroup) {
    const members = all.slice(from, from + mostOfGroup)
    const any = anyOf(members)
    if (any !== null) groups.push({ any, members })
    else groups.push(...members.map(one => ({ any: one.expression, members: [one] })))
  }
  return groups
}

/** null = its table would be too large. */
function anyOf(members: readonly RuleExpression[]): LinearRegex | null {
  try {
    return compileLinearRegex(members.map(({ source }) => `(?:${source})`).join('|'))
  } catch {
    return null
  }
}

/** Returns the first rule that a text violates; null = none. */
export function findBlockingRule(compiled: SafetyRules, text: string): SafetyRule | null {
  let broken = compiled.openings.of(text) ?? lineBroken(compiled, text)
  if (broken !== null) return broken
  scan(compiled.set, text, pattern => {
    broken = compiled.rules[compiled.ruleOf[pattern] ?? -1] ?? null
    return broken === null
  })
  return broken ?? findMatchingRule(compiled, text)
}

/**
 * Pasted text can contain instructions at the start of any line. Openings that may retract the user's own words count
 * only at the start of the text.
 */
function lineBroken({ openings }: SafetyRules, text: string): SafetyRule | null {
  let lines = 0
  for (let at = text.indexOf('\n'); at !== -1 && lines < mostLines; at = text.indexOf('\n', at + 1), lines++) {
    if (text.charCodeAt(at + 1) <= space) continue
    const broken = openings.at(text, at + 1, longestOpening)
    if (broken !== null && broken.unless === undefined) return broken
  }
  return null
}

const space = 32
const mostLines = 4_096

/** Returns the first rule with a matching expression. */
export function findMatchingRule({ expressions }: SafetyRules, text: string): SafetyRule | null {
  for (const { any, members } of expressions) {
    const broken = any.test(text) ? members.find(({ expression }) => expression.test(text)) : undefined
    if (broken !== undefined) return broken.rule
  }
  return null
}

/**
 * Returns the rules for text that the model reads: the operator's own rules and those against embedded instructions.
 * Anything else in such text is not a request.
 */
export function rulesForData(own: readonly SafetyRule[]): readonly SafetyRule[] {
  const ordering: readonly string[] = ['jailbreak', 'prompt_injection'] satisfies SafetyCategory[]
  return [...own, ...safetyRules.filter(({ category }) => ordering.includes(category)), orderInData]
}

const orderInData: SafetyRule = {
  id: 'order-in-data',
  category: 'prompt_injection',
  reason: 'Gives orders to the model within what it is to read.',
  patterns: dataOrders,
}

/** Returns the first rule that such a text violates. An instruction may open any of its sentences. */
export function firstBrokenByData(compiled: SafetyRules, text: string): SafetyRule | null {
  for (const from of beginningsOf(text)) {
    const broken = compiled.openings.at(text, from, longestOpening)
    if (broken !== null) return broken
  }
  return findBlockingRule(compiled, text)
}

/** In UTF-16 units: bounds the work for a text that consists of many sentence starts. */
const longestOpening = 600

const override = 'ignore|disregard|forget|bypass|override'
const earlier = 'previous|prior|preceding|earlier|above|before|foregoing|initial|original'
const orders = 'instructions|instruction|rules|guidelines|prompt|prompts|directions|directives|commands|programming'
const demand = 'how|steps|instructions|guide|tutorial|teach|recipe|manual|blueprint|explain|describe|show'
const make =
  'make|build|construct|create|assemble|synthesize|synthesise|produce|manufacture|cook|prepare|making|building'

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
      'ignore|disregard|forget ~3 previous|prior|earlier|above|following ~3 instructions|orders|directions ~3 just|only|simply|now|instead ~1 say|print|output|write|respond|reply',
      'ignore|disregard|forget ~2 instructions|orders|rules ~2 you ~2 got|received|given|had|learned ~1 before|earlier|previously',
      'stop everything ~3 print|say|output|write|respond',
      'forget everything ~1 you ~1 learned|know|knew|told',
      'ignoriere|vergiss ~2 alle|deine ~2 anweisungen|regeln ~12 systemprompt|verrate|zeige|gib',
    ],
  },
  {
    id: 'override-at-once',
    category: 'prompt_injection',
    reason: 'Opens by telling the model to drop its instructions.',
    patterns: [],
    openings: overridePatterns,
  },
  {
    id: 'override-earlier',
    category: 'prompt_injection',
    reason: 'Opens by telling the model to drop what was said before, and takes back nothing of its own.',
    patterns: [],
    openings: allowedOverrides,
    unless: retractionPatterns,
  },
  {
    id: 'unrestricted-persona',
    category: 'jailbreak',
    reason: 'Known template: a persona that is said to have no rules.',
    patterns: [
      'do anything now',
      'dan|jailbreak|unrestricted|evil mode enabled|activated',
      'dan mode|prompt|jailbreak',
      'developer mode output|response|responses',
      'simulate|chatgpt|gpt|with|enter|act ~4 developer|dan|jailbreak|opposite|evil mode enabled|activated|output',
      'in opposite|evil|jailbreak|unfiltered|uncensored mode',
      'unfiltered|uncensored|unlimited|unrestricted ~3 language model',
      'free|freed|escaped|released ~2 all ethics|restrictions|rules|limitations|morals',
      'have|has no|zero restrictions|limitations|filter|filters on|to|and|whatsoever',
      'not|never ~1 bound|restricted|constrained|governed|limited by ~1 any|openai|the|openai’s ~3 restrictions|policy|policies|guidelines|rules|ethical',
      'not required to follow any rules|policies|guidelines',
      'ignore|ignores|ignoring|disregard|disregards|disregarding|break ~2 openai|openai’s|chatgpt|ethical|all ~1 policies|policy|ethical|content|safety ~1 concerns|policies|guidelines|rules',
      'does|do|will not follow any rules|guidelines|ethics|policies',
      'completely|totally unhinged response|responses|answer|answers',
      'never refused|refuses|refuse ~2 direct ~1 human order|orders|request',
      'does|do not care ~2 laws|morals|ethics|legality',
      'answer|respond|reply ~8 two|2|both different|separate|distinct ~2 ways|manners|personalities|responses',
      'two|both different personalities',
      'opposite|contrary ~3 of|to ~3 chatgpt|gpt|openai',
      'never|not|dont ~4 say|respond|reply|answer|use ~3 sorry ~6 cannot|unable|ai|but ~3 to|as|i|fulfill|fulfil ~2 any|an|that|language|cannot',
      'filter level ~6 set|0|zero',
      'tokens ~12 reject|refuse|refusal|decline ~8 deducted|lose|lost|subtracted|taken',
      'evil|corrupted|villain|nemesis ~8 chatgpt|openai',
      'hypothetical|fictional ~8 language|ai model|models ~16 disregards|ignores|bound|illegal|unethical|restrictions',
      'language ~2 chatgpt ~1 wouldn|would|not|cannot|never',
      'evil|diabolical|sinister plan ~40 steps|step ~4 i will',
      'interpretation of ~3 content|openai policy|policies',
      'return|forward|send ~3 my messages ~12 format|image|url|urls',
      'without ~2 concern|concerns|regard for ~1 legality|ethics|morals|law|laws|ethical',
      'break|ignore the ~1 rules ~12 language model|chatgpt|openai|unfiltered',
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
    id: 'known-template',
    category: 'jailbreak',
    reason: 'The name or signature of a jailbreak that goes from hand to hand.',
    patterns: [
      'antigpt|chadgpt|basedgpt|basedbob|livegpt|deltagpt|persongpt|evilgpt|freegpt|freedomgpt|betterdan|mtdngaf|balakula|apophis|translatorbot|gpt-4real|anti-gpt',
      'a|an|as|model|named|called|being|is ucar|neco|nraf|m78|burple|ranti|stan|dude|dan|sda ~6 which|who|stands|as|is|chatbot|ai',
      'stands for do|strive|superior|make ~1 anything|avoid',
      'oppo|mongo|omega|jedi|cosmos ai|tom|mode|mind|dan ~8 chatgpt|gpt|restrictions|filter|trick',
      'always intelligent and machiavellian',
      'evil|twisted ~1 trusted confidant|confidante',
      'naughtiness|unethical|immorality level',
      'switch flipper',
      'generator|simulator ~2 of|for ~1 chatgpt|dan|gpt-4|virtual machine',
      'chatgpt start',
      'maximum|m78|dan virtual machine',
    ],
  },
  {
    id: 'explosives',
    category: 'weapons',
    reason: 'Asks how to build a bomb or another weapon of mass harm.',
    patterns: [
      `${demand} ~6 ${make} ~1 a|an|my|your|own bomb|explosive|grenade|landmine`,
      `${demand}|${make} ~6 pipe|nail|pressure|fertilizer|car|letter|homemade|molotov|petrol bomb|bombs|cocktail|explosive|explosives`,
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
