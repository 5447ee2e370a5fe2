import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createForest } from '../../../src/text/analysis/quality-gain.ts'
import { askForest } from '../../../src/training/forest.ts'

// Few values, so that cues often equal their thresholds.
const value = fc.integer({ min: -4, max: 4 }).map(steps => steps / 4)
const depth = 3
const leaf = fc.integer({ min: -32_768, max: 32_767 })
const tree = fc.record({
  asked: fc.array(fc.nat({ max: 6 }), { minLength: depth, maxLength: depth }),
  above: fc.array(value, { minLength: depth, maxLength: depth }),
  leaves: fc.array(leaf, { minLength: 2 ** depth, maxLength: 2 ** depth }),
})

test('createForest: returns the sum of its trees, independent of earlier calls', () => {
  const trees = fc.array(tree, { minLength: 1, maxLength: 20 })
  const texts = fc.array(fc.array(value, { minLength: 7, maxLength: 7 }), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(trees, texts, (grown, cuesOfTexts) => {
      const asked = Uint8Array.from(grown.flatMap(item => item.asked))
      const above = Float32Array.from(grown.flatMap(item => item.above))
      const leaves = grown.flatMap(item => item.leaves)
      const getForest = createForest({
        depth,
        asked: asked.toBase64(),
        above: new Uint8Array(above.buffer).toBase64(),
        leaves: new Uint8Array(Int16Array.from(leaves).buffer).toBase64(),
        scale: 1,
      })
      for (const cues of cuesOfTexts.map(cuesOfText => Float64Array.from(cuesOfText)))
        expect(getForest(cues)).toBe(askForest({ depth, asked, above, leaves: Float64Array.from(leaves) }, cues))
    }),
  )
})
