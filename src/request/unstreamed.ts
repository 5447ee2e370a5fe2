/** Models that a provider does not stream to a key. OpenAI requires a verified organization for some. */
import type { Model } from '../core/models/models.ts'
import type { Access } from '../providers/provider.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/** The operator may have verified the organization since. */
const rememberedMs = 3_600_000

/** Monotonic milliseconds until which no stream is requested, by model ID. */
const refused = new WeakMap<Access, Map<string, number>>()

/** Notes that the provider refused to stream this response. */
export function noteUnstreamed({ candidate }: Pick<UpstreamResponse, 'candidate'>, access: Access, now: number): void {
  const models = refused.get(access) ?? new Map<string, number>()
  refused.set(access, models.set(candidate.model.id, now + rememberedMs))
}

/** Returns whether the provider refuses to stream this model to this key. */
export function isUnstreamed(access: Access, { id }: Pick<Model, 'id'>, now: number): boolean {
  return now < (refused.get(access)?.get(id) ?? 0)
}
