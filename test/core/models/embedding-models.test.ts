import { describe, expect, test } from 'bun:test'
import { publishedEmbeddingModels, toEmbeddingModel } from '../../../src/core/models/embedding-models.ts'
import { fullName } from '../../../src/core/models/models.ts'

const row = { id: 'small', input_per_mtok: 0.03, same_as: 'openai/text-embedding-3-small' }

describe('toEmbeddingModel', () => {
  test('takes missing values from the published model in `same_as`', () => {
    expect(toEmbeddingModel('azure', row)).toMatchObject({
      contextWindow: 8_192,
      embedding: {
        space: 'openai/text-embedding-3-small',
        dimensions: 1_536,
        dimensionRange: { minimum: 1, maximum: 1_536 },
        tokenIds: 'decoded',
        batch: { inputs: 32 },
      },
    })
    expect(toEmbeddingModel('x', { id: 'y', input_per_mtok: 1 }).embedding).toMatchObject({
      space: 'x/y',
      dimensions: null,
      dimensionRange: null,
    })
  })

  test('publishes models that are hosts of themselves only, with a price and a source', () => {
    for (const model of publishedEmbeddingModels) {
      expect(model.embedding.space).toBe(fullName(model))
      expect(model).toMatchObject({ pricing: { output: 0 }, pricingSource: 'docs/embeddings.md', maxOutputTokens: 1 })
      expect(model.pricing.input).toBeGreaterThan(0)
    }
  })
})
