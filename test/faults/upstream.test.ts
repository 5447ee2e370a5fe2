/** All faults of a provider's responses, against one gateway. */
import './before-content.ts'
import './refusals.ts'
import './mid-stream.ts'
import './billing.ts'
