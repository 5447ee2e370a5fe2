import { createRecent, type Recent } from '../core/text/recent-map.ts'
import type { OpenSeat } from './meter.ts'

const maximumSettled = 20_000

/** Seats of requests that are settled, by request id: a repeated one is answered as before. The oldest are forgotten. */
export function createSettledSeats(): Recent<Pick<OpenSeat, 'seat' | 'limits'>> {
  return createRecent(maximumSettled)
}
