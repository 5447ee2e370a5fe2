/** What moderation says of a text, and what it needs to say so. */
import type { HarmClassifier } from '../harm/harm-classifier.ts'
import { extractHosts } from '../hosts/extract-hosts.ts'
import type { ModerationRule, ModerationRules } from '../rules/pattern-rules.ts'

type ModerationLayer = 'patterns' | 'classifier' | 'urls'

/** Result of moderating a text. `score` is the classifier's (0–1), whichever layer blocked. */
export type Verdict = {
  readonly verdict: 'allow' | 'block'
  readonly layer: ModerationLayer | null
  readonly category: string | null
  readonly score: number
  /** ID of the blocking rule, for the operator; null = another layer blocked. */
  readonly rule: string | null
}

/** Lookup of hosts that texts must not link to. */
export type BlockedHosts = { isBlocked(host: string): boolean }

/** The layers in process that judge an output. */
export type OutputLayers = Pick<HarmClassifier, 'answer' | 'isHarmless'> & {
  readonly rules: ModerationRules
  readonly hosts: BlockedHosts
}

export const allowed = (score: number): Verdict => ({
  verdict: 'allow',
  layer: null,
  category: null,
  score,
  rule: null,
})
export const allowVerdict = allowed(0)

/** Returns a blocking verdict; `score` is the classifier's, 0–1. */
export function blockVerdict(
  layer: ModerationLayer,
  category: string,
  score: number,
  rule: ModerationRule | null = null,
): Verdict {
  return { verdict: 'block', layer, category, score, rule: rule === null ? null : `${rule.id}: ${rule.reason}` }
}

/** Returns true if a text links to a blocked host in any notation. */
export function containsBlockedHost(hosts: BlockedHosts, text: string): boolean {
  let found = false
  extractHosts(text, host => {
    found = hosts.isBlocked(host)
    return !found
  })
  return found
}
