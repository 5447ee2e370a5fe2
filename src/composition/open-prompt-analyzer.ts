import type { FeatureReader } from '../core/analysis/features.ts'
import { createReaders, type PromptAnalyzer } from '../core/analysis/prompt-analysis.ts'
import effort from '../core/weights/effort.json'
import freshness from '../core/weights/freshness.json'
import gain from '../core/weights/gain.json'
import queryTypes from '../core/weights/query-types.json'

/** The reader of prompts with the weights that ship; `readFeatures` may be one that moderation reads with too. */
export function openPromptAnalyzer(readFeatures?: FeatureReader): PromptAnalyzer {
  return openReaders(readFeatures).read
}

/** The reader, and the explainer of what it says of difficulty. */
export function openReaders(readFeatures?: FeatureReader): ReturnType<typeof createReaders> {
  return createReaders({ queryTypes, freshness, gain, effort }, readFeatures)
}
