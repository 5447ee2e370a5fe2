/**
 * Blocks requests by the combination of an act, its object or victim, and the form of a request, in any order and
 * wording. Covers only the most serious harms, which a trained classifier must not miss because of plain wording. Words
 * about history, prevention, law, news or games excuse the sentence that they occur in.
 */
import { type Features, featureSieveSize, hashOf, sieveOf } from '../analysis/features.ts'
import type { SafetyCategory } from '../rules/pattern-rules.ts'

/** Words of each concept, in English; `one_two` = adjacent words, `word+` = with its regular endings. */
const concepts = {
  howTo:
    'how_to how_do_i how_do_you how_can_i how_can_you how_can_one how_could_i how_could_one how_would_i how_would_you how_would_one how_does_one how_might_i how_should_i steps step_by tutorial procedure instructions walkthrough walk_me guide manual tips_to tips_for ways_to way_to method_to methods_to method_for teach_me show_me tell_me help_me i_want_to i_need_to what_do_i_need what_materials what_ingredients what_equipment give_me best_way',
  plan: 'blueprint blueprints schematic schematics recipe formula build_plan assembly_plan construction_plan diy design_for designs_for',
  make: 'make making build building construct+ constructing assemble+ assembling create creating produce producing synthesize synthesizing synthesise synthesising cook cooking brew brewing culture culturing cultivate cultivating grow growing enrich enriching weaponize weaponizing weaponise weaponising manufacture manufacturing obtain obtaining buy buying acquire acquiring deploy deploying release releasing disperse dispersing spread spreading detonate detonating aerosolize put_together set_off',
  massWeapon:
    'nuclear_weapon nuclear_weapons nuclear_bomb nuclear_bombs nuclear_device nuclear_warhead atomic_bomb atomic_bombs atomic_weapon atom_bomb hydrogen_bomb fission_bomb thermonuclear dirty_bomb dirty_bombs chemical_weapon chemical_weapons biological_weapon biological_weapons bioweapon bioweapons nerve_agent nerve_agents nerve_gas mustard_gas poison_gas radiological_weapon radiological_bomb radiological_device nuke nukes anthrax sarin novichok tabun soman ricin botulinum vx_gas chlorine_bomb weapons_grade weapon_grade bomb_grade',
  sexual:
    'sexual sexually erotic erotica explicit_sex sex_scene sex_scenes sex_story sex_stories sex_with have_sex has_sex having_sex had_sex sex_act sex_acts making_love make_love makes_love porn porno pornographic pornography nude nudes naked orgasm orgasms smut smutty hentai lewd lewdly sensual seduces seduced seducing undresses undressing strips_naked masturbates masturbating intercourse sexting horny lustful kinky steamy',
  /** Used beside a stated age below 18. */
  young:
    'underage preteen preteens pre_teen toddler toddlers schoolgirl schoolgirls schoolboy schoolboys little_girl little_girls little_boy little_boys young_child young_children loli lolita shota teenage_girl teenage_girls teenage_boy teenage_boys teen_girl teen_boy first_grader grader_girl grader_boy middle_schooler middle_schoolers girl_scout boy_scout',
  child: 'child children kid kids minor minors infant infants',
  depict:
    'write writing story stories scene scenes describe describing depict+ depicting depiction draw drawing generate create image images picture pictures video videos fanfic fanfiction fiction roleplay role_play continue narrate poem comic script tell_me show_me find_me send_me share download chapter novel fantasy dialogue',
  groom: 'groom grooming seduce seducing molest molesting sext sexting',
  approach:
    'lure luring entice enticing trust befriend befriending meet meeting chat chatting talk talking contact approach approaching persuade persuading convince convincing get_a pick_up',
  unseen:
    'alone secret secretly parents_knowing parents_noticing parents_finding parents_know parents_back parents_backs nudes naked nude undress undressing pictures_of_herself pictures_of_himself photos_of_herself photos_of_himself sends_pictures send_pictures sends_photos send_photos my_house my_car my_van my_apartment',
  terrorists:
    'isis isil daesh al_qaeda al_qaida alqaeda al_shabaab boko_haram terrorist terrorists jihadist jihadists jihadi neo_nazi neo_nazis neonazi white_supremacist white_supremacists extremist extremists kkk klan atomwaffen terror_cell terror_group terrorism islamic_state jihad',
  recruit:
    'recruit+ recruiting recruitment recruiter radicalize radicalizing radicalise radicalising new_members new_followers new_fighters more_members more_followers more_fighters win_over invites_students invite_students invites_people attract_followers attract_members attracts_members attract_young attract_new persuades_young persuade_young take_up_arms swear_allegiance pledge_allegiance call_to_arms sign_up',
  produce:
    'write draft create make generate compose design produce prepare post flyer flier leaflet poster pamphlet speech video message script slogan advert ad tweet campaign help_me how_to how_do_i how_can_i how_would_i ways_to strategy plan_to give_me',
  join: 'join joining enlist enlisting',
  wish: 'i_want_to i_would_like help_me how_to how_do_i how_can_i where_can_i i_wish_to i_plan_to id_like i_d_like i_m_going',

  // Words that excuse a sentence.
  past: 'was were did history historical historically historian historians century manhattan oppenheimer hiroshima nagasaki museum documentary first_ever why war_ii world_war cold_war attempted invented',
  states:
    'iran iranian korea korean pakistan india israel russia russian china chinese iraq soviet country countries nation nations state states government governments regime treaty treaties sanctions disarmament proliferation nonproliferation iaea scientists researchers engineers deterrence',
  prevention:
    'prevent+ preventing prevention protect+ protecting protection safe safety safer detect+ detecting detection recognize recognise recognizing spot spotting signs warning warn+ avoid avoiding stop stopping report reporting counter countering combat combating fight_against dismantle dismantling disarm disarming dispose disposal decontaminate decontamination antidote vaccine vaccination treat treating treatment survive survivor survivors surviving shelter first_aid cope worried worry concerned suspect tell_if know_if know_whether help_victims rehabilitate rehabilitation deradicalize awareness exposed exposure resist resilience leave leaving quit refuse test_for tested was_sent were_sent was_asked received found_out happened_to should_i_do',
  law: 'law laws legal illegal court courts judge jury verdict convicted conviction convictions sentenced sentence trial prosecution prosecute prosecutors prosecutor police arrested arrest charged legislation statute crime_of offence offences offense offenses penalty punishment policy policies custody lawyer detective fbi',
  news: 'news journalist journalists reporter reporters article_about article_on essay_on essay_about essay_analysing essay_analyzing report_on report_about documentary research study studies statistics data analysis analyse analyze summarize summarise summary review lecture lesson thesis paper_on op_ed bill',
  education:
    'education educate educational explain_to teach_children teach_kids curriculum puberty age_appropriate consent health therapy therapist counselor counsellor doctor pediatric paediatric parent parenting biology anatomy vaccination ethics orientation identity abuse abused trauma gender',
  play: 'minecraft fallout civilization factorio roblox skyrim sims game games mod mods lego cardboard costume cosplay prop props replica model toy paper_mache puzzle simulation_game album tickets band concert chess',
  fiction: 'novel story stories character characters chapter screenplay film movie play plot protagonist',
  care: 'dog dogs cat cats horse horses pony goat goats pet pets poodle hair success leadership career future adoption foster adopted beard vegetables reading school_play library nephew_to',
} as const

type Concept = keyof typeof concepts
const names = Object.keys(concepts) as readonly Concept[]

type Deed = {
  readonly category: SafetyCategory
  readonly all: readonly Concept[]
  readonly unless: readonly Concept[]
  /** Maximum distance in words between all required concepts. */
  readonly span?: number
}

const usualSpan = 40

const told: readonly Concept[] = ['past', 'prevention', 'law', 'news']

const deeds: readonly Deed[] = [
  { category: 'weapons', all: ['howTo', 'make', 'massWeapon'], unless: [...told, 'states', 'play'] },
  { category: 'weapons', all: ['plan', 'massWeapon'], unless: [...told, 'states', 'play'] },
  // Fiction or not, and regardless of the story.
  { category: 'minors', all: ['sexual', 'young', 'depict'], unless: ['prevention', 'law', 'news', 'education'] },
  {
    category: 'minors',
    all: ['sexual', 'child', 'depict'],
    unless: ['prevention', 'law', 'news', 'education'],
    span: 8,
  },
  ...(['young', 'child'] as const).flatMap((victim): Deed[] => [
    { category: 'minors', all: ['groom', victim, 'howTo'], unless: [...told, 'care', 'education'] },
    {
      category: 'minors',
      all: ['approach', 'unseen', victim, 'howTo'],
      unless: [...told, 'care', 'education', 'fiction'],
      span: 24,
    },
  ]),
  {
    category: 'violence',
    all: ['recruit', 'terrorists', 'produce'],
    unless: [...told, 'education', 'fiction', 'play'],
  },
  { category: 'violence', all: ['join', 'terrorists', 'wish'], unless: [...told, 'education', 'fiction', 'play'] },
]

const bitOf = (concept: Concept) => 1 << names.indexOf(concept)
const bitsOf = (list: readonly Concept[]) => list.reduce((bits, concept) => bits | bitOf(concept), 0)
const rules = deeds.map(({ category, all, unless, span = usualSpan }) => ({
  category,
  all: bitsOf(all),
  unless: bitsOf(unless),
  span,
}))
const young = bitOf('young')

/** Maximum concept hits evaluated for two sentences. */
const mostHits = 64

/** Creates a function that returns the category of the most serious request in a text; null = none. Linear. */
export function createDeedReader(): (features: Features) => SafetyCategory | null {
  const { words: table, sieve, objects } = phraseTable()
  const places = new Int32Array(mostHits)
  const found = new Int32Array(mostHits)

  /** Evaluates the last two sentences. The last one begins at a hit and is not empty. */
  const asked = (hits: number): SafetyCategory | null => {
    let all = 0
    for (let at = 0; at < hits; at++) all |= found[at] ?? 0
    for (const rule of rules)
      if ((all & rule.all) === rule.all && (all & rule.unless) === 0 && isNear(rule, hits)) return rule.category
    return null
  }

  const isNear = (rule: (typeof rules)[number], hits: number): boolean => {
    for (let from = 0; from < hits; from++) {
      let near = 0
      for (let at = from; at < hits && (places[at] ?? 0) - (places[from] ?? 0) <= rule.span; at++)
        near |= found[at] ?? 0
      if ((near & rule.all) === rule.all) return true
    }
    return false
  }

  /** Checked first, because nearly all sentences contain no word for the object of such an act. */
  const namesObject = (words: Int32Array, from: number, to: number): boolean => {
    let named = 0
    for (let at = from; at < to; at++) named += objects[(words[at] ?? 0) & (featureSieveSize - 1)] ?? 0
    return named > 0
  }

  let hits = 0
  /** Index of the first hit of the last sentence. Earlier hits belong to the sentence before. */
  let here = 0

  const readSentence = (words: Int32Array, from: number, to: number) => {
    places.copyWithin(0, here, hits)
    found.copyWithin(0, here, hits)
    hits -= here
    here = hits
    for (let at = from; at < to; at++) {
      const word = words[at] ?? 0
      if (sieve[word & (featureSieveSize - 1)] === 0) continue
      const known = table.get(word)
      if (known === undefined) continue
      let bits = known.alone
      for (const { rest, means } of known.phrases) if (follow(words, at + 1, to, rest)) bits |= means
      if (known.years > 0 && saysAge(words, at, to)) bits |= young
      if (bits === 0) continue
      if (hits === mostHits) {
        places.copyWithin(0, mostHits / 2)
        found.copyWithin(0, mostHits / 2)
        hits = mostHits / 2
        here = Math.max(0, here - mostHits / 2)
      }
      places[hits] = at
      found[hits++] = bits
    }
  }

  return ({ words, count, breaks, breakCount }) => {
    hits = 0
    here = 0
    let from = 0
    let didName = false
    let names = false
    for (let index = 0; index <= breakCount; index++) {
      const to = index < breakCount ? (breaks[index] ?? count) : count
      const afterwards = index + 1 < breakCount ? (breaks[index + 1] ?? count) : count
      if (index === 0) names = namesObject(words, from, to)
      const willName = afterwards > to && namesObject(words, to, afterwards)
      if (didName || names || willName) {
        readSentence(words, from, to)
        // A request may be spread over two sentences.
        const category = hits > 0 && (didName || names) ? asked(hits) : null
        if (category !== null) return category
      } else {
        hits = 0
        here = 0
      }
      didName = names
      names = willName
      from = to
    }
    return null
  }
}

function follow(words: Int32Array, from: number, count: number, rest: readonly number[]): boolean {
  if (from + rest.length > count) return false
  for (let at = 0; at < rest.length; at++) if (words[from + at] !== rest[at]) return false
  return true
}

type Known = {
  /** Bits of the concepts that the word has without its neighbors. */
  alone: number
  readonly phrases: { readonly rest: readonly number[]; readonly means: number }[]
  /** The number as an age below 18; 0 = not one. */
  years: number
}

const numbers =
  'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen'.split(
    ' ',
  )

function phraseTable() {
  const words = new Map<number, Known>()
  const knownOf = (word: string): Known => {
    const known = words.get(hashOf(word)) ?? { alone: 0, phrases: [], years: 0 }
    words.set(hashOf(word), known)
    return known
  }
  for (const concept of names)
    for (const phrase of concepts[concept].split(' ').flatMap(inflected)) {
      const [first = '', ...rest] = phrase.split('_')
      const known = knownOf(first)
      if (rest.length === 0) known.alone |= bitOf(concept)
      else known.phrases.push({ rest: rest.map(hashOf), means: bitOf(concept) })
    }
  for (const [index, name] of numbers.entries())
    for (const written of [name, String(index + 1)]) knownOf(written).years = index + 1
  const lastWords = objects.flatMap(concept => concepts[concept].split(' ').flatMap(inflected).map(lastOf))
  return { words, sieve: sieveOf(words.keys()), objects: sieveOf(lastWords.map(hashOf)) }
}

/** Every blocked combination needs one of these. */
const objects: readonly Concept[] = ['massWeapon', 'sexual', 'groom', 'unseen', 'terrorists']

function lastOf(phrase: string): string {
  return phrase.split('_').at(-1) ?? phrase
}

function inflected(word: string): readonly string[] {
  if (!word.endsWith('+')) return [word]
  const stem = word.slice(0, -1)
  return [stem, `${stem}s`, `${stem}ed`, `${stem}d`]
}

const hashesOf = (words: string) => new Set(words.split(' ').map(hashOf))
const years = hashesOf('year years yr yrs')
const short = hashesOf('yo yrs y')
const aged = hashesOf('aged age')
const is = hashesOf('is was am turned turns s')
const whoIs = hashesOf('she he who girl boy daughter son student')
const old = hashOf('old')

/** Returns true if the number at `at` is a person's age: "12 years old", "aged 12", "she is 12". */
function saysAge(words: Int32Array, at: number, count: number): boolean {
  const next = at + 1 < count ? (words[at + 1] ?? 0) : 0
  const afterNext = at + 2 < count ? (words[at + 2] ?? 0) : 0
  const before = at > 0 ? (words[at - 1] ?? 0) : 0
  if (short.has(next) || (years.has(next) && afterNext === old)) return true
  if (aged.has(before)) return true
  return at > 1 && is.has(before) && whoIs.has(words[at - 2] ?? 0) && !years.has(next)
}
