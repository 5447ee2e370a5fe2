import { createRecentMap, type RecentMap } from '../core/text/recent-map.ts'
import type { OpenReservation } from './meter.ts'

const maximumSettled = 20_000

/** Seats of requests that are settled, by request id: a repeated one is answered as before. The oldest are forgotten. */
export function createSettledSeats(): RecentMap<Pick<OpenReservation, 'seat' | 'limits'>> {
  return createRecentMap(maximumSettled)
}
