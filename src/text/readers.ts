import { createFeatureReader } from './analysis/features.ts'
import { createReaders } from './analysis/prompt-analysis.ts'
import { createHarmClassifier } from './harm/harm-classifier.ts'
import effort from './weights/effort.json'
import freshness from './weights/freshness.json'
import gain from './weights/gain.json'
import queryTypes from './weights/query-types.json'

let opened: ReturnType<typeof open> | null = null

/**
 * The readers of prompts with the weights of this release. Their tables depend on nothing else, and their buffers hold
 * no text between two calls: one set serves the process, and a reload of the settings does not fill them again.
 */
export function openPromptAnalyzer(): ReturnType<typeof open> {
  opened ??= open()
  return opened
}

/** Moderation and routing share the features of a prompt, so that each is computed once. */
function open() {
  const readFeatures = createFeatureReader()
  return {
    ...createReaders({ queryTypes, freshness, gain, effort }, readFeatures),
    classifier: createHarmClassifier(readFeatures),
  }
}
