/**
 * Deadlines of all rigs: none is missed because neighbors use the processor. A test that is about a deadline sets a tiny
 * value for that one, while it holds the counterpart open, or moves the clock.
 */
import { deadlinesOfAtLeast, type ServiceDeadlines } from '../../src/core/request/deadlines.ts'

/** Below the time limit of a test, so that a missed deadline still names its cause. */
export const patienceMs = 30_000

/** For parts that a test opens itself. */
export const patient: ServiceDeadlines = deadlinesOfAtLeast(patienceMs)

/** Of a pool of connections or a Redis client that a test opens itself. */
export const patientStore = { deadlineMs: patienceMs } as const

/** For gateways and commands, in this process or in one of their own. */
export const patientEnvironment = {
  MINIMUM_DEADLINE_MS: String(patienceMs),
  CONNECT_TIMEOUT_MS: String(patienceMs),
} as const
