/**
 * Fixes the seed of all property tests, so that a commit passes or fails for its own reasons. `PROPERTY_SEED=random` or a
 * number explores other cases.
 */
import fc from 'fast-check'

const given = process.env.PROPERTY_SEED ?? '20261123'
if (given !== 'random') fc.configureGlobal({ seed: Number(given) })
