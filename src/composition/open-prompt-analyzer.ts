import type { FeatureReader } from '../core/analysis/features.ts'
import { createReaders, type PromptAnalyzer } from '../core/analysis/prompt-analysis.ts'
import effort from '../core/weights/effort.json'
import freshness from '../core/weights/freshness.json'
import gain from '../core/weights/gain.json'
import queryTypes from '../core/weights/query-types.json'

/** Opens the prompt analyzer with the weights of this release. Moderation may share `readFeatures`. */
export function openPromptAnalyzer(readFeatures?: FeatureReader): PromptAnalyzer {
  return openReaders(readFeatures).read
}

/** The analyzer, and the explanation of its complexity score. */
export function openReaders(readFeatures?: FeatureReader): ReturnType<typeof createReaders> {
  return createReaders({ queryTypes, freshness, gain, effort }, readFeatures)
}
