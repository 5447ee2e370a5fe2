/** Real moderation layers on a network and clock of the test. */

import { readConfig } from '../../../../src/config/config.ts'
import { createKeyedDigests } from '../../../../src/core/text/keyed-digests.ts'
import {
  createModeration,
  type Moderation,
  type ModerationParts,
} from '../../../../src/text/moderation/layers/moderation.ts'
import type { ModerationOptions } from '../../../../src/text/moderation/layers/settings.ts'
import { openPromptAnalyzer } from '../../../../src/text/readers.ts'

const nobody = () => Promise.reject(new Error('nobody is asked'))

export function moderationFor(
  settings: Partial<ModerationOptions> = {},
  deps: Partial<ModerationParts> = {},
): Moderation {
  return createModeration(
    {
      fetch: nobody,
      hop: nobody,
      monotonic: () => 0,
      after: () => () => {},
      log: { info() {}, warn() {} },
      findModelBreach: () => null,
      complete: nobody,
      digests: createKeyedDigests(new Uint8Array(32)),
      classifier: openPromptAnalyzer().classifier,
      ...deps,
    },
    { ...readConfig({}).moderation, ...settings },
  )
}
