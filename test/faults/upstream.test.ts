/** All that a provider can do to an answer, against one gateway. */
import './before-content.ts'
import './refusals.ts'
import './mid-stream.ts'
import './billing.ts'
