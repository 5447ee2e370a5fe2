/** Converts verdicts of the gateway's moderation into results of OpenAI's API. */
import type { Verdict } from '../../text/moderation/text-moderator.ts'
import type { ModerationResult } from './schema.ts'

const openaiCategories = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/instructions',
  'self-harm/intent',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
] as const

/** OpenAI's names for categories of the gateway. */
const openaiNames: ReadonlyMap<string, readonly string[]> = new Map([
  ['weapons', ['illicit', 'illicit/violent']],
  ['drugs', ['illicit']],
  ['cybercrime', ['illicit']],
  ['fraud', ['illicit']],
  ['illegal', ['illicit']],
  ['minors', ['sexual', 'sexual/minors']],
  ['violence', ['violence']],
  ['self_harm', ['self-harm']],
  ['sexual', ['sexual']],
  ['hate', ['hate']],
  ['harassment', ['harassment']],
])

/** Present in every result, so that clients need not test for them. */
const ownCategories = ['jailbreak', 'prompt_injection', 'malicious_url', 'secrets', 'privacy', 'misinformation']

/** Returns the result for one text. `holdsSecrets`: the operator blocks secrets, and the text contains one. */
export function toModerationResult(verdict: Verdict, holdsSecrets: boolean): ModerationResult {
  const found = new Set<string>(holdsSecrets ? ['gateway/secrets'] : [])
  if (verdict.verdict === 'block') {
    const category = verdict.category ?? 'illegal'
    for (const name of openaiNames.get(category) ?? [`gateway/${category}`]) found.add(name)
  }
  // A match of a rule or blocklist has score 1: the score in its verdict is the classifier's.
  const score = verdict.layer === 'classifier' ? verdict.score : 1
  const names = new Set([...openaiCategories, ...ownCategories.map(name => `gateway/${name}`), ...found])
  const all = [...names]
  return {
    flagged: found.size > 0,
    categories: Object.fromEntries(all.map(name => [name, found.has(name)])),
    category_scores: Object.fromEntries(all.map(name => [name, found.has(name) ? score : 0])),
    category_applied_input_types: Object.fromEntries(all.map(name => [name, ['text' as const]])),
    gateway_score: found.size > 0 ? score : verdict.score,
  }
}
