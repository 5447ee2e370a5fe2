import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { readEffort } from './effort.ts'
import { readFreshness } from './freshness.ts'
import { readGain } from './gain.ts'
import { readQueryTypes } from './query-types.ts'
import { readSafety } from './safety.ts'
import type { TrainingJob } from './training-job.ts'
import { readWorld } from './world.ts'

/** By head, what reads its course from the labelled sets; its weights are kept in `core/weights` under the same name. */
export const courses: Readonly<Record<string, () => Promise<TrainingJob>>> = {
  'query-types': readQueryTypes,
  freshness: readFreshness,
  gain: readGain,
  effort: readEffort,
  safety: readSafety,
  world: readWorld,
}

const Kept = Type.Object({ examples: Type.String() })

/** The digest of the examples that kept weights, a file's text, were learned from; null where it does not say. */
export function examplesIn(text: string): string | null {
  const kept: unknown = JSON.parse(text)
  return Value.Check(Kept, kept) ? kept.examples : null
}
