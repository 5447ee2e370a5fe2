import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { readEffort } from './effort.ts'
import { readFreshness } from './freshness.ts'
import { readGain } from './gain.ts'
import { readQueryTypes } from './query-types.ts'
import { readModeration } from './safety.ts'
import type { TrainingJob } from './training-job.ts'
import { readWorld } from './world.ts'

/**
 * Training jobs by classifier, each reading its data from the labeled sets. Weights are stored in `text/weights` under
 * the same name.
 */
export const courses: Readonly<Record<string, () => Promise<TrainingJob>>> = {
  'query-types': readQueryTypes,
  freshness: readFreshness,
  gain: readGain,
  effort: readEffort,
  safety: readModeration,
  world: readWorld,
}

const Kept = Type.Object({ examples: Type.String() })

/** Returns the digest of the examples that stored weights (a file's text) were trained on; null = not stated. */
export function examplesIn(text: string): string | null {
  const kept: unknown = JSON.parse(text)
  return Value.Check(Kept, kept) ? kept.examples : null
}
