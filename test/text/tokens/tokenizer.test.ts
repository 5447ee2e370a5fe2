import { expect, test } from 'bun:test'
import { GatewayError } from '../../../src/core/validation/errors.ts'
import { systemClock } from '../../../src/database/clock.ts'
import { createTokenizer } from '../../../src/text/tokens/tokenizer.ts'
import { patient } from '../../harness/patience.ts'

const getOutcome = (count: Promise<number>) =>
  count.catch((cause: unknown) => (cause instanceof GatewayError ? cause.code : String(cause)))

test('tokenizer: rejects waiting counts when it is closed, and starts again at the next count', async () => {
  const tokenizer = createTokenizer(patient.tokenizerMs, systemClock)
  const counts = [tokenizer.count(['hello']), tokenizer.count(['hello world'])].map(getOutcome)
  tokenizer.close()
  expect(await Promise.all(counts)).toEqual(['service_unavailable', 'service_unavailable'])
  expect(await getOutcome(tokenizer.count(['hello world', '!']))).toBe(3)
  tokenizer.close()
})
