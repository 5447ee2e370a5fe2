import { createReader, type Reader } from '../core/classify.ts'
import freshness from '../core/weights/freshness.json'
import gain from '../core/weights/gain.json'
import queryTypes from '../core/weights/query-types.json'

/** The reader of prompts with the weights that ship. */
export function openReader(): Reader {
  return createReader({ queryTypes, freshness, gain })
}
