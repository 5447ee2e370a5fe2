/** Real moderation layers on a network and clock of the test. */

import { readConfig } from '../../../../src/config/config.ts'
import { createKeyedDigests } from '../../../../src/core/text/keyed-digests.ts'
import { createSafety, type Moderation, type SafetyDeps } from '../../../../src/text/moderation/layers/moderation.ts'
import type { SafetySettings } from '../../../../src/text/moderation/layers/settings.ts'
import { openReaders } from '../../../../src/text/readers.ts'

const nobody = () => Promise.reject(new Error('nobody is asked'))

export function safetyFor(settings: Partial<SafetySettings> = {}, deps: Partial<SafetyDeps> = {}): Moderation {
  return createSafety(
    {
      fetch: nobody,
      hop: nobody,
      monotonic: () => 0,
      after: () => () => {},
      log: { info() {}, warn() {} },
      complete: nobody,
      digests: createKeyedDigests(new Uint8Array(32)),
      classifier: openReaders().classifier,
      ...deps,
    },
    { ...readConfig({}).safety, ...settings },
  )
}
