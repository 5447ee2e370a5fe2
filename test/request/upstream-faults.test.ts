/** All faults of a provider's responses, against one gateway. */
import '../faults/before-content.ts'
import '../faults/refusals.ts'
import '../faults/mid-stream.ts'
import '../faults/matrix.ts'
import '../faults/billing.ts'
