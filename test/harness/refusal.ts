import { GatewayError } from '../../src/core/validation/errors.ts'

/** Returns the error with which the gateway refuses; any other one, and a success, fail the test. */
export function getRefusal(action: () => unknown): GatewayError {
  try {
    action()
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown
    throw thrown
  }
  throw new Error('nothing was refused')
}
